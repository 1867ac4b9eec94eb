#!/usr/bin/env bash
# Writes a file as a part of the comment on the pull request $PULL_REQUEST, in the place of the last part with the same
# first line. A stack has one comment: its preview and its rehearsal are the parts.
set -euo pipefail
export MARKER STACK
MARKER=$(head -n 1 "$1")
if [ -z "$MARKER" ]; then
  echo "::error::there is nothing to comment: see the steps above"
  exit 1
fi
STACK=${MARKER#*: }
parts='^<!-- persia-(preview|rehearsal): '
comments=repos/$GITHUB_REPOSITORY/issues
# Anyone may write such a first line, so that only our own comments count.
last=$(gh api --paginate "$comments/$PULL_REQUEST/comments" --jq \
  '.[] | select(.user.login == "github-actions[bot]" and (.body | startswith("<!-- persia-preview: \(env.STACK)")
    or startswith("<!-- persia-rehearsal: \(env.STACK)"))) | {id, body}' | head -n 1)
body=$(mktemp)
trap 'rm -f "$body"' EXIT
# What the comment has besides this part stays.
jq -r '.body // empty' <<< "${last:-{\}}" |
  awk -v parts="$parts" '$0 ~ parts { skip = $0 == ENVIRON["MARKER"] } !skip' > "$body.others"
if grep -q '^<!-- persia-preview' "$1"; then cat "$1" "$body.others" > "$body"; else cat "$body.others" "$1" > "$body"; fi
rm -f "$body.others"
if [ -n "$last" ]; then
  gh api --method PATCH "$comments/comments/$(jq .id <<< "$last")" --field "body=@$body" --silent
else
  gh api --method POST "$comments/$PULL_REQUEST/comments" --field "body=@$body" --silent
fi
