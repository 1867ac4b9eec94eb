#!/usr/bin/env bash
# Prints the comment of what a deployment of $STACK would do: with $REFRESH true, to
# what there is, and else to what the state says that there is.
set -euo pipefail
exec bin/persia comment --stack "$STACK" -- \
  pulumi preview --stack "$STACK" --refresh="$REFRESH" --json --non-interactive --color never
