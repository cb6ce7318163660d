#!/usr/bin/env bash
# api_reference.sh [FOLDER]: writes the reference of the public headers by Doxygen, as HTML into FOLDER; without, build/api. Fails if a
# comment is wrong: a parameter that the function has not, a reference to nothing.
set -euo pipefail
folder=$(realpath -m "${1:-$(dirname "$0")/../build/api}")
cd "$(dirname "$0")/.."
mkdir -p "$folder"
{
  cat docs/Doxyfile
  echo "OUTPUT_DIRECTORY = \"$folder\""
  echo "HTML_OUTPUT = ."
  echo "PROJECT_NUMBER = $(cat VERSION)"
  echo "INPUT = ronda.hpp ronda.h ronda_kv.h $(grep -v -e '^#' -e ' detail$' cmake/public_headers.txt | tr '\n' ' ')"
} | doxygen -
echo "$folder/index.html"
