#!/usr/bin/env bash
# Makes sure, where it may, that there is sudo for the test with SudoSpawner; without it the test is skipped.
set -euo pipefail

if ! command -v sudo >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -q && apt-get install -yq --no-install-recommends sudo
fi
command -v sudo >/dev/null || echo "No sudo: the test with SudoSpawner will be skipped."
