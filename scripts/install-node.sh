#!/usr/bin/env bash
# Installs the packages of Debian or Ubuntu that a real node of the sandbox needs, if any
# of them is missing. Elsewhere it changes nothing: the sandbox says what is missing.
set -euo pipefail

packages=(containerd runc containernetworking-plugins iproute2 iptables ipset busybox-static)

command -v dpkg-query >/dev/null || exit 0
missing=()
for package in "${packages[@]}"; do
	[[ $(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
	exit 0
fi
if [[ $(id -u) -ne 0 ]]; then
	echo "install-node.sh: not installed: ${missing[*]}; as root: apt-get install ${missing[*]}" >&2
	exit 0
fi
echo "installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq -y --no-install-recommends "${missing[@]}" >&2
