#!/usr/bin/env bash
# Measures the first hour's first command: `make up` in a fresh clone with empty caches
# of Go. It prints how long each program took to compile, and at the end the time, the
# processor time and the most memory that was in use beyond what was before. It takes
# tens of minutes and 15 GB of disk, and measures nothing if others use the machine.
#
#   scripts/cold-start.sh [STACK]
set -euo pipefail
cd "$(dirname "$0")/.."

stack=${1:-dev}
folder=$(mktemp -d)
available() { awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo; }
before=$(available)

watch() { # writes the least memory that was available
	local least=$before now
	while sleep 1; do
		now=$(available)
		if ((now < least)); then
			least=$now
			echo "$least" > "$folder/least"
		fi
	done
}
echo "$before" > "$folder/least"
watch &
watcher=$!
finish() {
	kill "$watcher"
	make -C "$folder/clone" --no-print-directory down STACK="$stack" || true
	# Go's cache of modules is read-only.
	chmod -R u+w "$folder"
	rm -rf "$folder"
}
trap finish EXIT

git clone --quiet . "$folder/clone"
export GOCACHE=$folder/build GOMODCACHE=$folder/modules GOFLAGS=-modcacherw
TIMEFORMAT="%0R s, of which the processors worked %0U s for the programs and %0S s for the system"
time make -C "$folder/clone" --no-print-directory up STACK="$stack"
echo "at most $((before - $(< "$folder/least"))) MiB more memory in use than before"
echo "$(nproc) cores, $(go version), $(date -u +%F)"
