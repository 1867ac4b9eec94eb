#!/usr/bin/env bash
# Prints the comment of what a destruction of $STACK would do.
set -euo pipefail
exec bin/persia comment --stack "$STACK" --title Destruction -- \
  pulumi destroy --stack "$STACK" --preview-only --json --non-interactive --color never
