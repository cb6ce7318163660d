#!/usr/bin/env bash
# What checkpoints every 100 steps cost the CNN, on a machine that does nothing else (by hand; a minute and a half): the time that
# training waited for them, and the speed with and without, in turns, of which the best counts.   checkpoint_cost.sh APPS [ROUNDS]
source "$(dirname "$0")/lib.sh"
limit=120 rounds=${2:-4}
best() { awk -v a="$1" -v b="$2" 'BEGIN { print (b > a ? b : a) }'; }
with=0 without=0
trained 2 mnist_cnn --steps 20
for ((round = 0; round < rounds; ++round)); do
  trained 2 mnist_cnn --steps 500
  without=$(best "$without" "$(summary samples_per_second)")
  trained 2 mnist_cnn --steps 500 --checkpoint-dir "$work/$round" --checkpoint-every 100
  with=$(best "$with" "$(summary samples_per_second)")
  expect_summary written 5
  share=$(awk -v e="$(sed -n '/"checkpoint"/,$s/ *"exposed_seconds": \([0-9.e-]*\).*/\1/p' "$work/summary.json" | tail -1)" \
    -v t="$(summary train_seconds)" 'BEGIN { print 100 * e / t }')
  echo "round $round: training waited for checkpoints $share % of its time"
done
cost=$(awk -v a="$without" -v b="$with" 'BEGIN { print 100 * (a / b - 1) }')
echo "$without samples/s without checkpoints, $with with one every 100 steps: they cost $cost %"
expect 'less than 2 %' at_least 2 "$cost"
