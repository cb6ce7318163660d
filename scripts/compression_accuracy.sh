#!/usr/bin/env bash
# Does a model learn as well with compressed gradients? Trains the CNN with each compression and several seeds, two ranks that
# send to each other although they share a node, and compares the mean test accuracies. Status 1 where one is off by more
# than 0.2 points.
#
# usage: scripts/compression_accuracy.sh [EPOCHS [SEEDS]]      defaults: 2 epochs, seeds 1 to 3 (about three minutes on two cores)
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
epochs=${1:-2} seeds=${2:-3}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

off=0
for compression in none bf16 int8 int4 2bit; do
  row= sum=0
  for ((seed = 1; seed <= seeds; ++seed)); do
    mpirun -n 2 "$here/build/release/apps/mnist_cnn" --quiet --epochs "$epochs" --seed "$seed" --allreduce ring \
      --compression "$compression" --summary-json "$work/summary.json"
    accuracy=$(sed -n 's/^  "test_accuracy": \([0-9.]*\),$/\1/p' "$work/summary.json")
    row+=$(awk -v a="$accuracy" 'BEGIN { printf " %.2f |", 100 * a }')
    sum=$(awk -v s="$sum" -v a="$accuracy" 'BEGIN { print s + 100 * a }')
  done
  mean=$(awk -v s="$sum" -v n="$seeds" 'BEGIN { printf "%.3f", s / n }')
  [[ $compression != none ]] || reference=$mean
  printf '| %s |%s %s |\n' "$compression" "$row" "$mean"
  awk -v a="$mean" -v b="$reference" 'BEGIN { exit !(a - b > 0.2 || b - a > 0.2) }' && off=1
done
exit $off
