#!/bin/sh
# Installs TensorBoard into a virtual environment of its own, once, and has it read what the release build writes.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
venv=${XDG_CACHE_HOME:-$HOME/.cache}/ronda/tensorboard
[ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import tensorboard' 2>/dev/null || {
  echo "Installing TensorBoard into $venv"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet tensorboard
}
RONDA_TENSORBOARD_PYTHON=$venv/bin/python ctest --test-dir "$root/build/release" -R '^system.tensorboard$' --output-on-failure
