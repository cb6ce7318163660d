#!/bin/sh
# Installs PyTorch into a virtual environment of its own, once, and compares random models with it.
#   scripts/check_pytorch_random.sh [--models N] [--seed N]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
python=$("$root/scripts/own_python.sh" torch safetensors numpy)
cmake --build "$root/build/release" --target random_models >/dev/null
exec "$python" "$root/scripts/check_pytorch_random.py" "$root/build/release/test/trainer/random_models" "$@"
