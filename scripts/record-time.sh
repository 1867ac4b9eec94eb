#!/usr/bin/env bash
# Runs a command and, if it succeeds, records how many seconds it took in .sandbox/times, for `make bench`.
#
#   scripts/record-time.sh NAME COMMAND…
set -euo pipefail
times=$(cd "$(dirname "$0")/.." && pwd)/.sandbox/times

name=$1
shift
started=$(date +%s)
"$@"
# `make -n` runs nothing of the command.
flags=${MAKEFLAGS:-}
[[ ${flags%%[ -]*} != *n* ]] || exit 0
mkdir -p "$(dirname "$times")"
printf '%s\t%s\n' "$name" "$(($(date +%s) - started))" >> "$times"
