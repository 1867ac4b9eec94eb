#!/usr/bin/env bash
# Writes a comment to the pull request $PULL_REQUEST, in the place of the last one
# with the same first line.
set -euo pipefail
export MARKER
MARKER=$(head -n 1 "$1")
if [ -z "$MARKER" ]; then
  echo "::error::there is no preview to comment: see the steps above"
  exit 1
fi
comments=repos/$GITHUB_REPOSITORY/issues
# Anyone may write such a first line, so that only our own comments count.
id=$(gh api --paginate "$comments/$PULL_REQUEST/comments" --jq \
  '.[] | select(.user.login == "github-actions[bot]" and (.body | startswith(env.MARKER))) | .id' | head -n 1)
if [ -n "$id" ]; then
  gh api --method PATCH "$comments/comments/$id" --field "body=@$1" --silent
else
  gh api --method POST "$comments/$PULL_REQUEST/comments" --field "body=@$1" --silent
fi
