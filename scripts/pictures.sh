#!/usr/bin/env bash
# Renders the pictures of the documentation into dist/pictures, as GitHub does, on a light and on a dark
# page. It needs Node.js and Chromium: on Debian and Ubuntu, apt-get install npm chromium.
set -euo pipefail
cd "$(dirname "$0")/.."

chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
	echo "pictures.sh: there is no Chromium; on Debian and Ubuntu: apt-get install chromium" >&2
	exit 1
}
export PUPPETEER_SKIP_DOWNLOAD=1 PUPPETEER_EXECUTABLE_PATH=$chromium
npm --prefix scripts/pictures ci --silent --no-audit --no-fund

output=$PWD/dist/pictures
rm -rf "$output"
mkdir -p "$output"
browser=$(mktemp)
trap 'rm -f "$browser"' EXIT
# Chromium's own sandbox does not start for root.
[[ $(id -u) -ne 0 ]] || echo '{"args": ["--no-sandbox"]}' > "$browser"
[[ -s $browser ]] || echo '{}' > "$browser"

render() { # PAGE NAME THEME BACKGROUND
	scripts/pictures/node_modules/.bin/mmdc --quiet --puppeteerConfigFile "$browser" \
		--input "$1" --output "$output/$2-$3.md" --outputFormat png --scale 2 --theme "$3" --backgroundColor "$4"
	rm "$output/$2-$3.md"
}
git grep -l '^```mermaid' -- '*.md' | while read -r page; do
	name=$(basename "$page" .md)
	render "$page" "$name" default white
	render "$page" "$name" dark '#0d1117'
done
ls "$output"/*.png
