#!/usr/bin/env bash
# Compiles the sandbox command for the archive of the toolchain, and records its checksum and its
# sources in sandbox/toolchain/sandbox.sha256. All machines make the same bytes.
#
#   scripts/record-sandbox.sh .sandbox/archived/sandbox
set -euo pipefail
cd "$(dirname "$0")/.."

binary=$1
mkdir -p "$(dirname "$binary")"
GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0 \
	go -C sandbox build -trimpath -buildvcs=false -ldflags '-s -w' -o "../$binary" ./cmd/sandbox
sum=$(sha256sum "$binary")
echo "${sum%% *} $(scripts/sandbox-sources.sh)" > sandbox/toolchain/sandbox.sha256
