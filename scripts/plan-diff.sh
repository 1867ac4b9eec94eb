#!/usr/bin/env bash
# Shows how the working tree changes the plans of the stack files: everything that the
# program registers for each. Compares with HEAD, or with another commit.
#
#   scripts/plan-diff.sh [COMMIT]
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0

commit=${1:-HEAD}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/source" "$folder/before" "$folder/after"
git archive "$commit" | tar -x -C "$folder/source"

# Writes the plans of the repository in one folder to another. The comparison with the
# golden files may fail.
write_plans() {
	(cd "$1" && go test -count=1 ./tests -run '^TestGoldenPlans$' -plans "$2") > "$folder/log" 2>&1 || true
	[[ -n $(ls "$2") ]] || { cat "$folder/log"; exit 1; } >&2
}
write_plans "$folder/source" "$folder/before"
write_plans "$PWD" "$folder/after"

cd "$folder"
git --no-pager diff --no-index --stat --patch -U8 before after || true
