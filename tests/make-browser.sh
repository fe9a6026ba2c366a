#!/usr/bin/env bash
# Makes sure that there is a Chromium for the end-to-end tests, and a library that makes clocks wrong.  usage: make-browser.sh
set -euo pipefail

clocks=$(compgen -G '/usr/lib/*/faketime/libfaketime.so.1' || true) # without it one test is skipped
if ! (command -v chromium >/dev/null && [ -n "$clocks" ]) && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -q && apt-get install -yq --no-install-recommends chromium libfaketime
fi
command -v chromium >/dev/null || {
    echo "The end-to-end tests need Chromium. Install the package chromium." >&2
    exit 1
}
