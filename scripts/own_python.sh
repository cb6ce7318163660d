#!/bin/sh
# Installs packages into a virtual environment of their own, once, and prints the path of its Python.
#   scripts/own_python.sh PACKAGE…     the first one names the environment, and is looked for there
set -eu
venv=${XDG_CACHE_HOME:-$HOME/.cache}/ronda/$1
if ! "$venv/bin/python" -c "import $1" 2>/dev/null; then
  echo "Installing $1 into $venv" >&2
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet "$@" >&2
fi
echo "$venv/bin/python"
