#!/usr/bin/env bash
# Learning curves and the confusion matrix of a training, as SVG. --help says how to use it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
command -v python3 >/dev/null || { echo "plot_training.sh: python3 is missing; install it (Debian: python3)" >&2; exit 2; }
exec python3 "$here/plots/training.py" "$@"
