#!/usr/bin/env bash
# Makes sure that there is a Chromium for the end-to-end tests.  usage: make-browser.sh
set -euo pipefail

if ! command -v chromium >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -q && apt-get install -yq --no-install-recommends chromium
fi
command -v chromium >/dev/null || {
    echo "The end-to-end tests need Chromium. Install the package chromium." >&2
    exit 1
}
