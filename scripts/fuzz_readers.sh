#!/usr/bin/env bash
# Damages files of every format of data at random, and reads them, with AddressSanitizer and UndefinedBehaviorSanitizer: each gives samples
# or one clear error (test/data/damage_test.cpp).
#   scripts/fuzz_readers.sh [FILES [SEED]]     a million files, drawn by SEED (the time of day); status 1 where a reader fell
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
files=${1:-1000000} seed=${2:-$(date +%s)}
for number in "$files" "$seed"; do
  [[ $number =~ ^[0-9]+$ ]] || { echo "ronda: error: scripts/fuzz_readers.sh [FILES [SEED]]: '$number' is no whole number" >&2; exit 2; }
done

install_packages "${packages[@]}" "${formats[@]}"
build asan test_data
export LSAN_OPTIONS=suppressions=test/support/lsan.txt  # what Open MPI does not give back
echo "== $files files, seed $seed"
RONDA_FUZZ_ROUNDS=$files RONDA_TEST_SEED=$seed build/asan/test/data/test_data '[damage]' || {
  echo "fallen: RONDA_FUZZ_ROUNDS=$files RONDA_TEST_SEED=$seed build/asan/test/data/test_data '[damage]'"
  exit 1
}
