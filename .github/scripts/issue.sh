#!/usr/bin/env bash
# Keeps one issue open for $STACK while its check for drift does not succeed.
#
#   issue.sh OUTCOME BODY-FILE
set -euo pipefail
outcome=$1 body=$2
export TITLE="Drift of stack $STACK"
number=$(gh issue list --repo "$GITHUB_REPOSITORY" --state open --author "app/github-actions" --limit 1000 \
  --json number,title --jq '.[] | select(.title == env.TITLE) | .number' | head -n 1)
case $outcome:$number in
success:) ;;
success:*) gh issue close "$number" --repo "$GITHUB_REPOSITORY" --comment "The stack is as main says again." ;;
*:) gh issue create --repo "$GITHUB_REPOSITORY" --title "$TITLE" --body-file "$body" ;;
*) gh issue edit "$number" --repo "$GITHUB_REPOSITORY" --body-file "$body" ;;
esac
