#!/usr/bin/env bash
# Makes sure that there are a Prometheus and a VictoriaMetrics for the tests.  usage: make-prometheus.sh
set -euo pipefail

missing=()
command -v prometheus >/dev/null && command -v promtool >/dev/null || missing+=(prometheus)
command -v victoria-metrics >/dev/null || missing+=(victoria-metrics)
[ ${#missing[@]} = 0 ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -q && apt-get install -yq --no-install-recommends "${missing[@]}" && exit 0
fi
echo "Tests of the source \"prometheus\" are skipped: install the packages ${missing[*]}." >&2
