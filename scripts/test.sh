#!/usr/bin/env bash
# All tests: installs what is missing, builds build/release, runs ctest.
#   scripts/test.sh [--without NAMES] [NAME…]      only tests whose names match one of NAME, and not NAMES (regular expressions)
#   RONDA_PRESET=cuda scripts/test.sh …   the same on a build for GPUs; tests that need one are skipped where there is none
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

install_packages "${packages[@]}" procps python3 python3-numpy
preset=${RONDA_PRESET:-release}
[[ $preset != cuda ]] || scripts/fetch_cudnn_frontend.sh
build "$preset"
selection=()
if [[ ${1:-} == --without ]]; then
  selection=(-E "${2:?usage: $0 [--without NAMES] [NAME…]}")
  shift 2
fi
(($#)) && selection+=(-R "$(IFS='|'; echo "$*")")
status=0
ctest --preset "$preset" "${selection[@]}" || status=$?
why=$(grep -h 'skipped: ' "build/$preset/Testing/Temporary/LastTest.log" | sort | uniq -c) || exit $status
printf 'What was skipped, how often, and why:\n%s\n' "$why"
exit $status
