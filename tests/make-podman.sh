#!/usr/bin/env bash
# Makes sure, where it may, that there is Podman for the tests with containers; without it they are skipped.
set -euo pipefail

if ! command -v podman >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -q && apt-get install -yq --no-install-recommends podman runc netavark
fi
command -v podman >/dev/null || echo "No Podman: the tests with containers will be skipped."
