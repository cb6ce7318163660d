#!/usr/bin/env bash
# What it costs to lose no work, on a machine that does nothing else (by hand; some three minutes): checkpoints and audits every 100
# steps of the CNN on two ranks. Within one run the steps after each are compared with those before the next, place by place, in
# medians over all of them, so that what else the machine does falls on both. A run without either shows how far to believe it.
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
