#!/usr/bin/env bash
# Records the tour of the sandbox as an animated picture, docs/start/sandbox.svg: make up, an edit, its
# preview, and a refusal. It needs Node.js and what `make up` needs.
set -euo pipefail
cd "$(dirname "$0")/.."
unset MAKEFLAGS MAKELEVEL # the tour is of a user's make

git diff --quiet HEAD -- Pulumi.dev.yaml || {
	echo "recording.sh: it edits Pulumi.dev.yaml, which has changes of yours" >&2
	exit 1
}
work=$(mktemp -d)
cp Pulumi.dev.yaml "$work/"
restore() {
	cp "$work/Pulumi.dev.yaml" Pulumi.dev.yaml
	make -s down > "$work/down.log" 2>&1 || cat "$work/down.log" >&2
	rm -rf "$work"
}
trap restore EXIT

# Compiling is no part of the tour, nor is a stack that is there already.
make -s toolchain down
node scripts/recording/record.mjs docs/start/sandbox.svg <<'TOUR'
make up
# Two dataloaders instead of one
sed -i '/dataloader:/,/replicas/ s/replicas: 1/replicas: 2/' Pulumi.dev.yaml
make preview
# Two nn-workers on one GPU
sed -i '/nnWorker:/,/replicas/ s/replicas: 1/replicas: 2/' Pulumi.dev.yaml
make preview
TOUR
