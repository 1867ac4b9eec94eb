#!/usr/bin/env bash
# Records an edit of a running stack in the sandbox, its preview, and a refusal as an animated picture,
# docs/start/sandbox.svg. It needs Node.js, script of util-linux, and what `make up` needs.
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

# What people want to see begins when the stack is up.
make -s toolchain down up > "$work/up.log" 2>&1 || { cat "$work/up.log" >&2; exit 1; }
node scripts/recording/record.mjs docs/start/sandbox.svg <<'TOUR'
# The stack dev is up. Two dataloaders instead of one:
sed -i '/dataloader:/,/replicas/ s/replicas: 1/replicas: 2/' Pulumi.dev.yaml
make preview
# Two nn-workers on one GPU:
sed -i '/nnWorker:/,/replicas/ s/replicas: 1/replicas: 2/' Pulumi.dev.yaml
make preview
TOUR
