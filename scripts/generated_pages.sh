#!/bin/sh
# Writes what programs know best: docs/options.md, from the command line, and the table of docs/strategies.md, from the tests.
# With --check: fails where a page is not up to date.
#   scripts/generated_pages.sh [--check] [BUILD_FOLDER]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
check=no
if [ "${1:-}" = --check ]; then
  check=yes
  shift
fi
build=${1:-$root/build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$build/test/apps/options_page" > "$work/options.md"
"$build/test/trainer/strategies_table" > "$work/table"
sed -e '/<!-- table: begin/{p;r '"$work/table" -e '}' -e '/<!-- table: begin/,/<!-- table: end/{/<!-- table: end/!d}' \
  "$root/docs/strategies.md" > "$work/strategies.md"

for page in options.md strategies.md; do
  if [ $check = no ]; then
    cp "$work/$page" "$root/docs/$page.new"
    mv "$root/docs/$page.new" "$root/docs/$page"
  elif ! diff -u "$root/docs/$page" "$work/$page"; then
    echo "docs/$page is not up to date: run scripts/generated_pages.sh" >&2
    exit 1
  fi
done
