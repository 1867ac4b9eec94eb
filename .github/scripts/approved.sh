#!/usr/bin/env bash
# Succeeds if the preview of $STACK is still the one that was approved.
#
#   approved.sh FINGERPRINT
set -euo pipefail
approved=$1
comment=$("$(dirname "$0")/preview.sh")
if ! grep -qxF "<!-- persia-changes: $approved -->" <<< "$comment"; then
  echo "$comment" >> "$GITHUB_STEP_SUMMARY"
  echo "::error::the changes of stack $STACK are no longer those that were approved, and nothing was changed: look at them in the summary, and re-run all jobs"
  exit 1
fi
