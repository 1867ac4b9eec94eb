#!/usr/bin/env bash
# Fails if a stack has protected resources. Pulumi stops at the first of them,
# after it has deleted everything that depends on it.
set -euo pipefail
protected=$(pulumi stack export --stack "$1" | jq -r '.deployment.resources[]? | select(.protect) | .urn')
if [ -n "$protected" ]; then
  echo "$protected"
  echo "::error::resources of stack $1 are protected from deletion," \
    "and nothing is destroyed: set persia:cluster.deletionProtection to false, and deploy that first"
  exit 1
fi
