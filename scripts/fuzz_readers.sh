#!/usr/bin/env bash
# Damages files of every format of data at random, and reads them, with AddressSanitizer and UndefinedBehaviorSanitizer: each gives samples
# or one clear error (test/data/damage_test.cpp). On all processors, and in memory where the system has /dev/shm.
#   scripts/fuzz_readers.sh [FILES [SEED]]     a million files of each format, drawn by SEED (the time of day); about an hour
#                                              on two processors; status 1 where a reader fell
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
files=${1:-1000000} seed=${2:-$(date +%s)}
for number in "$files" "$seed"; do
  [[ $number =~ ^[0-9]+$ ]] || { echo "ronda: error: scripts/fuzz_readers.sh [FILES [SEED]]: '$number' is no whole number" >&2; exit 2; }
done
files=$((10#$files)) seed=$((10#$seed)) # 08 is eight

install_packages "${packages[@]}"
build asan test_data
export LSAN_OPTIONS=suppressions=test/support/lsan.txt:print_suppressions=0  # what Open MPI does not give back
[[ ! -w /dev/shm ]] || export TMPDIR=/dev/shm

part=10000 # files of each format between two lines of progress

try() { # try SEED FILES: says FILES once they were read
  local said
  said=$(RONDA_FUZZ_ROUNDS=$2 RONDA_TEST_SEED=$1 build/asan/test/data/test_data '[damage]' 2>&1) || {
    echo "$said" >&2
    echo "fallen: RONDA_FUZZ_ROUNDS=$2 RONDA_TEST_SEED=$1 build/asan/test/data/test_data '[damage]'" >&2
    return 255 # xargs starts no more
  }
  echo "$2"
}
export -f try

parts() { # a seed and a number of files, a line each
  local left=$files
  for (( ; left > 0; left -= part)); do echo "$((seed++)) $((left < part ? left : part))"; done
}

echo "== $files files of each format, seed $seed"
tried=0
parts | xargs -r -P "$(nproc)" -L 1 bash -c 'try "$@"' try | while read -r more; do
  echo "$((tried += more)) of $files"
done || exit 1
