#!/usr/bin/env bash
# Measures the first hour's first command: `make up` in a fresh clone with empty caches
# of Go. It prints how long each program took to compile, and at the end the time, the
# processor time and the most memory that was in use beyond what was before. It takes
# tens of minutes and 15 GB of disk, and measures nothing if others use the machine.
# With the file or the URL of an archive, it takes the compiled programs from there, and
# with WARM=1 it keeps Go's caches.
#
#   scripts/cold-start.sh [STACK [TOOLCHAIN]]
set -euo pipefail

stack=${1:-dev}
toolchain=${2:-}
if [[ -f $toolchain ]]; then
	toolchain=$(realpath "$toolchain")
fi
cd "$(dirname "$0")/.."
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

if [[ ! ${WARM:-} ]]; then
	export GOCACHE=$folder/build GOMODCACHE=$folder/modules GOFLAGS=-modcacherw
fi
TIMEFORMAT="%0R s, of which the processors worked %0U s for the programs and %0S s for the system"
measured() {
	git clone --quiet . "$folder/clone"
	make -C "$folder/clone" --no-print-directory up STACK="$stack" TOOLCHAIN="$toolchain"
}
time measured
echo "at most $((before - $(< "$folder/least"))) MiB more memory in use than before"
echo "$(nproc) cores, $(go version), $(date -u +%F)"
