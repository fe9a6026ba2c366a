#!/usr/bin/env bash
# Makes a virtual environment with what the demo and the end-to-end tests need.  usage: make-venv.sh DIRECTORY [REQUIREMENTS]
set -euo pipefail
directory=$1
requirements=${2:-requirements.txt}
here=$(cd "$(dirname "$0")" && pwd)

# The first Python that is new enough and can make environments; the system's first, since everybody may run it.
find_python() {
    local candidate
    for candidate in "${PYTHON:-}" /usr/bin/python3 python3 python3.14 python3.13 python3.12 python3.11; do
        if [ -n "$candidate" ] && "$candidate" -c \
            'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

if ! python=$(find_python); then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -q && apt-get install -yq --no-install-recommends python3 python3-venv
    fi
    python=$(find_python) || {
        echo "No Python 3.11 or newer with venv found. Install python3-venv, or set PYTHON=/path/to/python3." >&2
        exit 1
    }
fi

rm -rf "$directory"
"$python" -m venv "$directory"
"$directory/bin/python" -m pip install --quiet --disable-pip-version-check \
    -r "$here/$requirements" -c <(grep -v '^jupyterhub==' "$here/constraints.txt")
