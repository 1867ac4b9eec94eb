#!/usr/bin/env bash
# Compiles the sandbox command into the file that is named, unless nothing has changed
# since: that takes hundredths of a second, where `go build` takes more than one to see
# the same. It looks at the time when a file or its folder was last touched in any way,
# which no program sets back, and at what Go is and how it is set up.
#
# With the file or the URL of the toolchain's archive, it takes the command from there if the
# repository records it as compiled from the same sources.
#
#   scripts/compile-sandbox.sh .sandbox/bin/sandbox [ARCHIVE]
set -euo pipefail
cd "$(dirname "$0")/.."

# As the Makefile and the toolchain have it.
export CGO_ENABLED=0 GOFLAGS=-trimpath

binary=$1
archive=${2:-}
stamp=$(dirname "$binary")/.$(basename "$binary").made
environment=$(go env GOVERSION GOROOT GOOS GOARCH GOFLAGS GOWORK GOEXPERIMENT CGO_ENABLED)

changed() {
	# Nothing is compiled from these.
	find . \( -path './.*' -o -path ./bin -o -path ./dist -o -path ./docs -o -path ./examples -o -path ./tests \
		-o -name '*.md' -o -name '*_test.go' -o -path './Pulumi.*yaml' \) -prune -o \
		! -path . -cnewer "$stamp" -print -quit
}

current() {
	[[ -x $binary && -f $stamp && $(<"$stamp") == "$environment" && -z $(changed) ]]
}

open() { # a file, or a URL whose server sends something every 30 seconds
	if [[ $archive == http://* || $archive == https://* ]]; then
		curl --fail --location --silent --show-error --speed-limit 1 --speed-time "${PATIENCE:-30}" "$archive"
	else
		cat "$archive"
	fi
}

take() {
	local record=sandbox/toolchain/sandbox.sha256 sum="" sources=""
	[[ ! -f $record ]] || read -r sum sources < "$record"
	if [[ $sources != "$(scripts/sandbox-sources.sh)" ]]; then
		echo "sandbox: not taken from $archive: the one that $record records, of a release, is compiled from other sources, or by another Go" >&2
		return 1
	fi
	# It is the archive's first program. tar(1) reads no further, so the pipe breaks.
	{ open 2> "$taken.errors" || true; } | tar -xzO --occurrence=1 sandbox > "$taken" 2>> "$taken.errors" || true
	if ! sha256sum --check --quiet --status <<< "$sum  $taken"; then
		echo "sandbox: not taken from $archive: its SHA-256 is not the recorded one: $(head -n 1 "$taken.errors")" >&2
		return 1
	fi
	chmod 755 "$taken"
	mv "$taken" "$binary"
	echo "sandbox: taken from $archive" >&2
}

count() { # says how many packages are compiled, and everything else that Go says
	awk '/[ :]/ { print; next } ++n % 50 == 0 { print "compiled " n " packages"; fflush() }' >&2
}

current && exit 0
[[ -x $binary || $archive ]] || echo "compiling the sandbox: minutes the first time, seconds after" >&2
mkdir -p "$(dirname "$binary")"
# Of two commands at once, the second waits for what the first compiles. Without flock(1),
# both compile.
if command -v flock > /dev/null; then
	exec 9>> "$stamp.lock"
	flock 9
	current && exit 0
fi
# It is older than the compilation: files that change meanwhile are compiled the next time.
started=$(mktemp "$stamp.XXXXXX")
taken=$started.taken
trap 'rm -f "$started" "$taken" "$taken.errors"' EXIT
printf '%s\n' "$environment" > "$started"
[[ $archive ]] && take ||
	go -C sandbox build -v -o "../$binary" ./cmd/sandbox 2>&1 9>&- | count
mv "$started" "$stamp"
