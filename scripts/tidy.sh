#!/usr/bin/env bash
# clang-tidy over the sources of the library and the applications. All of them are read several at a time, which is four times as
# fast; files that are named are read one by one. With RONDA_PRESET=cuda one by one, and the GPU's sources too.
#   scripts/tidy.sh [FILE…]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

rooms=(runtime collectives c_api layers optim data apps)
preset=${RONDA_PRESET:-tidy}
[[ $preset == cuda ]] || (($# == 0)) || preset=release
[[ $preset != cuda ]] || scripts/fetch_cudnn_frontend.sh
# The analyzer need not look at every state of each function.
options=(--extra-arg=-Wno-error --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=20000)

# together FILE: puts sources where they are included, since the analyzer looks at a file's own functions alone
together() {
  local whole
  whole=$(awk '/^#include ".*\.cpp"$/ {
    file = substr($2, 2, length($2) - 2)
    print "#line 1 \"" file "\""
    while ((getline line <file) > 0) print line
    next
  } { print }' "$1")
  printf '%s\n' "$whole" >"$1"
}

if (($#)); then
  [[ -f build/$preset/compile_commands.json ]] || cmake --preset "$preset" >/dev/null
  files=("$@")
elif [[ $preset == cuda ]]; then
  cmake --preset "$preset" >/dev/null
  mapfile -t files < <(git ls-files "${rooms[@]/%//*.cpp}")
else
  rm -rf "build/$preset"
  cmake --preset "$preset" >/dev/null
  mapfile -t files < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "build/$preset/compile_commands.json" | sort -u)
  for file in "${files[@]}"; do
    [[ $file != *_cxx.cxx ]] || together "$file"
  done
  options+=(--extra-arg="-iquote$PWD/apps" --extra-arg="-iquote$PWD/apps/doctor") # where they were included from
fi
tidy() { xargs -r -P "$(nproc)" -n 1 clang-tidy -p "build/$preset" "${options[@]}" --quiet "$@" 2>/dev/null; }
printf '%s\n' "${files[@]}" | sed '/apps\//d' | tidy
# This one check looks at all of CLI11, once for each program.
printf '%s\n' "${files[@]}" | sed '/apps\//!d' | tidy --checks=-performance-unnecessary-value-param
