#!/usr/bin/env bash
# Prints what the sandbox command is compiled from: the SHA-256 of its sources, and Go's version and
# platform. It also reads files that are not compiled, because finding those that are takes longer than
# a minute in a new clone.
set -euo pipefail
cd "$(dirname "$0")/.."

files() {
	git ls-files -z --cached --others --exclude-standard --deduplicate -- \
		':!/*.md' ':!docs' ':!.github' ':!.devcontainer' ':!examples' ':!tests' ':!*_test.go' ':!*/testdata/*' ':!sandbox/toolchain/*.json' \
		':!sandbox/toolchain/sandbox.sha256' | LC_ALL=C sort -z
}
# git lists files that are deleted, too.
digest=$(files | while IFS= read -rd '' file; do [[ ! -f $file ]] || printf '%s\0' "$file"; done | xargs -0 sha256sum | sha256sum)
echo "${digest%% *} $(go env GOVERSION) $(go env GOOS)/$(go env GOARCH)"
