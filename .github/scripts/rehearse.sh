#!/usr/bin/env bash
# Rehearses $STACK from $BASE, and writes the summary to $RUNNER_TEMP/rehearsal.md and to the job's summary.
set -euo pipefail
make --no-print-directory sandbox >&2
code=0
make --no-print-directory rehearse MARKDOWN=1 > "$RUNNER_TEMP/rehearsal.md" || code=$?
cat "$RUNNER_TEMP/rehearsal.md" >> "$GITHUB_STEP_SUMMARY"
exit "$code"
