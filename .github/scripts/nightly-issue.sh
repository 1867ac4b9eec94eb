#!/usr/bin/env bash
# Opens an issue about a nightly run that failed, with its seeds and its failures.
#
#   nightly-issue.sh LOG URL-OF-THE-RUN
set -euo pipefail
log=$1 url=$2
[ -e "$log" ] || { log=$(mktemp); echo "The tests did not start." > "$log"; }
body=$(mktemp) failures=$(mktemp)
# In a file, because head(1) ends before them when they are long.
grep -E -A9 '^ *--- FAIL|_test\.go:[0-9]+:|^ *panic:' "$log" > "$failures" || tail -n 50 "$log" > "$failures"
{
  echo "$url"
  echo
  echo 'Each of these commands repeats the run of a test:'
  echo '```'
  grep -ohE "make nightly RUN='[^']*' SEED=[0-9]+" "$log" | sort -u || echo "none: no test began that has a seed"
  echo '```'
  echo 'Failures:'
  echo '```'
  head -c 50000 "$failures"
  echo '```'
} > "$body"
gh issue create --repo "$GITHUB_REPOSITORY" --title "Nightly tests of $(date -u +%F) failed" --body-file "$body"
