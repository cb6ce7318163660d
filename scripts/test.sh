#!/usr/bin/env bash
# All tests: installs what is missing, builds build/release, runs ctest.
#   scripts/test.sh [NAME…]      only tests whose names match one of NAME (regular expressions)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

install_packages "${packages[@]}" procps
build release
selection=()
(($#)) && selection=(-R "$(IFS='|'; echo "$*")")
exec ctest --preset release "${selection[@]}"
