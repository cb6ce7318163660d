#!/bin/sh
# Installs TensorBoard into a virtual environment of its own, once, and has it read what the release build writes.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
python=$("$root/scripts/own_python.sh" tensorboard)
RONDA_TENSORBOARD_PYTHON=$python ctest --test-dir "$root/build/release" -R '^system.tensorboard$' --output-on-failure
