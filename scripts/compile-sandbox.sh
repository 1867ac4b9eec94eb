#!/usr/bin/env bash
# Compiles the sandbox command into the file that is named, unless nothing has changed
# since: that takes hundredths of a second, where `go build` takes more than one to see
# the same. It looks at the time when a file or its folder was last touched in any way,
# which no program sets back, and at what Go is and how it is set up.
#
#   scripts/compile-sandbox.sh .sandbox/bin/sandbox
set -euo pipefail
cd "$(dirname "$0")/.."

# As the Makefile and the toolchain have it.
export CGO_ENABLED=0

binary=$1
stamp=$(dirname "$binary")/.$(basename "$binary").made
environment=$(go env GOVERSION GOROOT GOOS GOARCH GOFLAGS GOWORK GOEXPERIMENT CGO_ENABLED)

changed() {
	# What nothing is compiled from is left out.
	find . \( -path ./.git -o -path ./.sandbox -o -path ./bin -o -path ./dist -o -path ./docs \) -prune -o \
		! -path . -cnewer "$stamp" -print -quit
}

current() {
	[[ -x $binary && -f $stamp && $(<"$stamp") == "$environment" && -z $(changed) ]]
}

current && exit 0
[[ -x $binary ]] || echo "compiling the sandbox: minutes the first time, seconds after" >&2
mkdir -p "$(dirname "$binary")"
# Of two commands at once, the second waits for what the first compiles. Without flock(1),
# both compile.
if command -v flock > /dev/null; then
	exec 9>> "$stamp.lock"
	flock 9
	current && exit 0
fi
# Its time is that of before the compilation: what changes meanwhile is compiled next.
started=$(mktemp "$stamp.XXXXXX")
trap 'rm -f "$started"' EXIT
printf '%s\n' "$environment" > "$started"
go -C sandbox build -o "../$binary" ./cmd/sandbox 9>&-
mv "$started" "$stamp"
