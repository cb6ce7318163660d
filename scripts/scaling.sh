#!/usr/bin/env bash
# How an application scales: trains it on 1, 2, … ranks in turns, and leaves a table and a plot. --help says how to use it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
command -v python3 >/dev/null || { echo "scaling.sh: python3 is missing; install it (Debian: python3)" >&2; exit 2; }
exec python3 "$here/plots/scaling.py" "$@"
