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

if [[ -x $binary && -f $stamp && $(<"$stamp") == "$environment" && -z $(changed) ]]; then
	exit 0
fi
[[ -x $binary ]] || echo "compiling the sandbox: minutes the first time, seconds after" >&2
mkdir -p "$(dirname "$binary")"
# Its time is that of before the compilation: what changes meanwhile is compiled next.
printf '%s\n' "$environment" > "$stamp.new"
go -C sandbox build -o "../$binary" ./cmd/sandbox
mv "$stamp.new" "$stamp"
