#!/bin/sh
# Installs onnxruntime into a virtual environment of its own, once, and compares what it makes of exported models with what
# Ronda predicts, of every application's model and of every operation.
#   scripts/check_onnx.sh [APPLICATION…]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
venv=${XDG_CACHE_HOME:-$HOME/.cache}/ronda/onnxruntime
[ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import onnxruntime' 2>/dev/null || {
  echo "Installing onnxruntime into $venv"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet onnxruntime numpy
}
exec "$venv/bin/python" "$root/scripts/check_onnx.py" "$root/build/release" "$@"
