#!/usr/bin/env bash
# Installs Debian's or Ubuntu's PostgreSQL, which the tests of PEDL's database start, if
# there is none. Elsewhere it changes nothing, and the tests say what is missing.
set -euo pipefail

[[ -d /usr/lib/postgresql ]] && exit 0
command -v dpkg-query >/dev/null || exit 0
if [[ $(id -u) -ne 0 ]]; then
	echo "install-tests.sh: not installed: postgresql; as root: apt-get install postgresql" >&2
	exit 0
fi
echo "installing postgresql" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq -y --no-install-recommends postgresql >&2
