#!/usr/bin/env bash
# Prints the stacks that differ from the commit $1 as a JSON list: all, unless only stack files and pages differ.
set -euo pipefail
changed=$(git diff --name-only "$1...HEAD" -- . ':!docs' ':!*.md' ':!.github')
if [ -n "$changed" ] && grep -qv '^Pulumi\.[^/]*\.yaml$' <<< "$changed"; then
  exec "$(dirname "$0")/stacks.sh"
fi
# A file that is gone has no stack.
while read -r file; do if [ -e "$file" ]; then echo "$file"; fi; done <<< "$changed" |
  jq -cnR '[inputs | select(startswith("Pulumi.")) | ltrimstr("Pulumi.") | rtrimstr(".yaml")]'
