#!/usr/bin/env bash
# Succeeds if the preview of $STACK is still the one that was approved.
#
#   approved.sh FINGERPRINT [PREVIEW]
#
# PREVIEW prints the preview as a comment: preview.sh by default, or destruction.sh.
set -euo pipefail
approved=$1
preview=${2:-preview.sh}
comment=$("$(dirname "$0")/$preview")
# The fingerprint is the second line. Further down, a text of the stack could look
# like one.
if [ "$(sed -n 2p <<< "$comment")" != "<!-- persia-changes: $approved -->" ]; then
  echo "$comment" >> "$GITHUB_STEP_SUMMARY"
  echo "::error::the changes of stack $STACK are no longer those that were approved," \
    "and nothing was changed: look at them in the summary, and re-run all jobs"
  exit 1
fi
