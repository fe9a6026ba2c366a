#!/usr/bin/env bash
# Installs the proxy that JupyterHub is usually run with, for the end-to-end tests.  usage: make-node.sh DIRECTORY
set -euo pipefail
directory=$1
proxy=configurable-http-proxy@5.3.0

if ! command -v npm >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -q && apt-get install -yq --no-install-recommends nodejs npm
fi
command -v npm >/dev/null || {
    echo "The end-to-end tests need Node.js 20 or newer with npm. Install the packages nodejs and npm." >&2
    exit 1
}

rm -rf "$directory"
mkdir -p "$directory"
npm install --prefix "$directory" --no-audit --no-fund --loglevel=error "$proxy"
