#!/usr/bin/env bash
# What it costs to lose no work, on a machine that does nothing else (by hand; some five minutes): checkpoints and audits every 100
# steps of the CNN on two ranks. Within one run the steps after each are compared with those before the next, place by place, in
# medians over all of them, so that what else the machine does falls on both. A run without either shows how far to believe it.
# What each step costs, gradients looked at, no run shows by itself: runs with and without take turns, and the best of each counts.
# safety_costs.sh APPS STEP_TIMES [STEPS]
source "$(dirname "$0")/lib.sh"
step_times=${2:?usage: $0 APPS STEP_TIMES [STEPS]} steps=${3:-8000} every=100
limit=300

# cost MOST OPTION…: of 100 steps, in per cent of what they take where nothing has just happened
cost() {
  local most=$1 found
  shift
  what="${*:-neither}"
  what=${what/#--checkpoint-dir $work\/checkpoints /}
  STEP_TIMES=$work/times run mpirun -n 2 "$step_times" --quiet --epochs 1000 --steps "$steps" --plan "$work/plan" "$@"
  expect_status 0
  found=$(python3 - "$work/times" $every <<'END'
import statistics, sys
times, every = [float(line) for line in open(sys.argv[1])], int(sys.argv[2])
taken = [later - earlier for earlier, later in zip(times, times[1:])]
rounds = range(every - 1, len(taken) - every + 1, every)
usual = [statistics.median(taken[first + place] for first in rounds) for place in range(every)]
print(round(100 * (statistics.mean(usual) / statistics.median(usual[every // 2:]) - 1), 2))
END
  )
  echo "$what: $found % of $steps steps"
  expect "less than $most %" at_least "$most" "$found"
}
cost 2 --checkpoint-dir "$work/checkpoints" --checkpoint-every $every
cost 1 --audit-every $every
cost 1 # neither

# cost_of_each MOST APPLICATION STEPS OPTION…
cost_of_each() {
  local most=$1 application=(2 "$2" --steps "$3" --plan "$work/plan.$2") round found
  shift 3
  what="${application[1]} $*"
  rm -f "$work/with" "$work/without"
  for round in 1 2 3 4 5; do
    trained "${application[@]}"
    summary samples_per_second >>"$work/without"
    trained "${application[@]}" "$@"
    summary samples_per_second >>"$work/with"
  done
  found=$(awk -v a="$(sort -g "$work/without" | tail -1)" -v b="$(sort -g "$work/with" | tail -1)" 'BEGIN { print 100 * (a / b - 1) }')
  echo "$what: $found % (samples/s without: $(tr '\n' ' ' <"$work/without"), with: $(tr '\n' ' ' <"$work/with"))"
  expect "less than $most %" at_least "$most" "$found"
}
cost_of_each 3 mnist_cnn 500 --on-nonfinite stop
cost_of_each 5 mnist_mlp 6000 --on-nonfinite stop
