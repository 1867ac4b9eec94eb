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
mine() { # prints the comments on the stack, the first one first: anyone may write such a first line, so only our own count
  gh api --paginate "$comments/$PULL_REQUEST/comments" --jq \
    '.[] | select(.user.login == "github-actions[bot]" and (.body | startswith("<!-- persia-preview: \(env.STACK)")
      or startswith("<!-- persia-rehearsal: \(env.STACK)"))) | {id, body}'
}
body=$(mktemp)
trap 'rm -f "$body" "$body.others"' EXIT
for _ in 1 2 3; do
  found=$(mine)
  first=$(head -n 1 <<< "$found")
  # What the comment has besides this part stays.
  jq -r '.body // empty' <<< "${first:-{\}}" |
    awk -v parts="$parts" '$0 ~ parts { skip = $0 == ENVIRON["MARKER"] } !skip' > "$body.others"
  if grep -q '^<!-- persia-preview' "$1"; then cat "$1" "$body.others" > "$body"; else cat "$body.others" "$1" > "$body"; fi
  if [ -n "$first" ]; then
    gh api --method PATCH "$comments/comments/$(jq .id <<< "$first")" --field "body=@$body" --silent
  else
    gh api --method POST "$comments/$PULL_REQUEST/comments" --field "body=@$body" --silent
  fi
  # The other workflow may have written at the same time: the first comment stays, and has this part.
  sleep "${PAUSE:-5}"
  for id in $(mine | tail -n +2 | jq -r 'select(.body | startswith(env.MARKER)) | .id'); do
    gh api --method DELETE "$comments/comments/$id" --silent
  done
  if mine | head -n 1 | jq -e '.body | contains(env.MARKER)' > /dev/null; then exit 0; fi
done
echo "::error::another workflow writes the comment again and again"
exit 1
