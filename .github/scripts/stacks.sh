#!/usr/bin/env bash
# Prints the stacks as a JSON list: those that have a file Pulumi.STACK.yaml.
set -euo pipefail
printf '%s\n' Pulumi.*.yaml | jq -cnR '[inputs | ltrimstr("Pulumi.") | rtrimstr(".yaml")]'
