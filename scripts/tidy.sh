#!/usr/bin/env bash
# clang-tidy over the sources of the library and the applications, several read at a time, which takes half as long; or over the
# files that are named. With RONDA_PRESET=cuda the GPU's sources too.
#   scripts/tidy.sh [--quick] [FILE…]     --quick: what CI does. Without clang's analyzer, which takes half of the time, and without
#                                         checks that take long and seldom find something
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

without=
if [[ ${1:-} == --quick ]]; then
  without=,-clang-analyzer-*,-readability-redundant-declaration,-readability-redundant-control-flow,-misc-unused-using-decls
  without+=,-bugprone-suspicious-string-compare,-bugprone-unused-raii,-bugprone-infinite-loop,-modernize-use-nullptr
  shift
fi
preset=${RONDA_PRESET:-release}
[[ $preset != cuda ]] || scripts/fetch_cudnn_frontend.sh
configure() { # build/tidy, which is never built
  cmake --preset "$preset" -B build/tidy -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON "$@" >/dev/null
}
# The analyzer need not look at every state of each function.
options=(--extra-arg=-Wno-error --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=8000)

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

# programs FILE…: prints all as one source, each in a namespace of its own, so that CLI11 is read once
programs() {
  local file
  grep -h '^#include' "$@" | sort -u
  for file; do
    printf 'namespace program_%s {\n#line 1 "%s"\n' "$(basename "$file" .cpp)" "$file"
    sed 's/^#include.*//' "$file"
    echo '}'
  done
}

rm -rf build/tidy
if (($#)); then
  configure -DCMAKE_UNITY_BUILD=OFF
  files=("$@")
else
  configure -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=64 -DRONDA_BUILD_TESTS=OFF
  mapfile -t files < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' build/tidy/compile_commands.json | sed '/\.cu$/d; /\/tidy\/apps\//d' | sort -u)
  for file in "${files[@]}"; do
    [[ $file != *_cxx.cxx ]] || together "$file"
  done
  apps=build/tidy/apps/CMakeFiles parts=$apps/ronda_doctor.dir/Unity/unity_0_cxx.cxx
  mapfile -t sources < <(find "$PWD/apps" -name '*.cpp' -exec grep -L '^int main(' {} +)
  mapfile -t mains < <(find "$PWD/apps" -name '*.cpp' -exec grep -l '^int main(' {} +)
  printf '#include "%s"\n' "${sources[@]}" >"$parts"
  together "$parts"
  programs "${mains[@]}" >"$apps/mnist_mlp.dir/Unity/unity_0_cxx.cxx"
  files+=("$PWD/$parts" "$PWD/$apps/mnist_mlp.dir/Unity/unity_0_cxx.cxx")
  for folder in apps apps/*/; do options+=(--extra-arg="-iquote$PWD/$folder"); done # where they were included from
fi
# The largest first.
tidy() { xargs -r ls -S | xargs -r -P "$(nproc)" -n 1 clang-tidy -p build/tidy "${options[@]}" --quiet --checks="$1$without" 2>/dev/null; }
printf '%s\n' "${files[@]}" | sed '/apps\//d' | tidy ''
# This one check looks at all of CLI11.
printf '%s\n' "${files[@]}" | sed '/apps\//!d' | tidy -performance-unnecessary-value-param
