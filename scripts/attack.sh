#!/usr/bin/env bash
# Attacks Ronda's promises (docs/trust.md) for an hour: the tests labelled `attack`, which draw at random, again and again with other
# seeds, with AddressSanitizer and UndefinedBehaviorSanitizer, and whole trainings that are killed, cut off, forged at and stopped.
#   scripts/attack.sh [SECONDS [SEED]]     3600 seconds, seeds from SEED on (the time of day); status 1 where anything fell
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
seconds=${1:-3600} seed=${2:-$(date +%s)}
for number in "$seconds" "$seed"; do
  [[ $number =~ ^[0-9]+$ ]] || { echo "ronda: error: scripts/attack.sh [SECONDS [SEED]]: '$number' is no whole number" >&2; exit 2; }
done

install_packages "${packages[@]}" procps iproute2 python3 python3-numpy
build asan
build release
end=$((SECONDS + seconds)) rounds=0
fallen=()
while ((SECONDS < end)); do
  for preset in asan release; do
    log=$(mktemp)
    echo "== round $((++rounds)), seed $seed, $preset, $((end - SECONDS)) s left"
    RONDA_TEST_SEED=$seed ctest --test-dir "build/$preset" -L attack --output-on-failure --timeout 600 >"$log" 2>&1 || {
      cat "$log"
      fallen+=("seed $seed, $preset")
    }
    grep 'tests passed' "$log" || :
    rm -f "$log"
  done
  ((++seed))
done
((${#fallen[@]} == 0)) || { printf 'fallen: RONDA_TEST_SEED of %s\n' "${fallen[@]}"; exit 1; }
echo "nothing fell in $rounds rounds"
