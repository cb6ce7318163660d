#!/bin/sh
# Writes docs/options.md, from what the command line knows of its options. With --check: fails where the page is not up to date.
#   scripts/options_page.sh [--check] [PROGRAM]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
check=no
if [ "${1:-}" = --check ]; then
  check=yes
  shift
fi
program=${1:-$root/build/release/test/apps/options_page}
if [ $check = no ]; then
  "$program" > "$root/docs/options.md.new"
  mv "$root/docs/options.md.new" "$root/docs/options.md"
elif ! "$program" | diff -u "$root/docs/options.md" -; then
  echo "docs/options.md is not what the options are: run scripts/options_page.sh" >&2
  exit 1
fi
