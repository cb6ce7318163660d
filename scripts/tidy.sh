#!/usr/bin/env bash
# clang-tidy over the library's sources, with the compile commands of build/release (configured where it is not there). With
# RONDA_PRESET=cuda those of build/cuda, and the GPU's sources too.
#   scripts/tidy.sh [FILE…]
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

preset=${RONDA_PRESET:-release} gpu=(':!*/cuda/*' ':!*/cudnn/*' ':!*/nccl/*')
if [[ $preset == cuda ]]; then
  scripts/fetch_cudnn_frontend.sh
  gpu=()
fi
[[ -f build/$preset/compile_commands.json ]] || cmake --preset "$preset" >/dev/null
files=("$@")
((${#files[@]})) || mapfile -t files < <(git ls-files 'runtime/*.cpp' 'collectives/*.cpp' 'layers/*.cpp' 'optim/*.cpp' 'data/*.cpp' 'apps/*.cpp' "${gpu[@]}")
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy -p "build/$preset" --extra-arg=-Wno-error --quiet 2>/dev/null
