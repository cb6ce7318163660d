#!/usr/bin/env bash
# clang-tidy over the library's sources, with the compile commands of build/release (configured where it is not there).
#   scripts/tidy.sh [FILE…]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

[[ -f build/release/compile_commands.json ]] || cmake --preset release >/dev/null
files=("$@")
((${#files[@]})) || mapfile -t files < <(git ls-files 'runtime/*.cpp' 'collectives/*.cpp' 'layers/*.cpp' 'optim/*.cpp' 'data/*.cpp' 'apps/*.cpp')
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy -p build/release --quiet 2>/dev/null
