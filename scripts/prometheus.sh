#!/usr/bin/env bash
# Unpacks the Prometheus of Debian or Ubuntu into a folder, and installs nothing.
set -euo pipefail

cd "$1"
apt-get update -qq
apt-get download -qq prometheus 2>/dev/null
dpkg-deb --extract prometheus_*.deb .
