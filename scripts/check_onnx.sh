#!/bin/sh
# Installs onnxruntime into a virtual environment of its own, once, and compares what it makes of exported models with what
# Ronda predicts, of every application's model and of every operation.
#   scripts/check_onnx.sh [APPLICATION…]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
python=$("$root/scripts/own_python.sh" onnxruntime numpy)
exec "$python" "$root/scripts/check_onnx.py" "$root/build/release" "$@"
