#!/usr/bin/env bash
# What it costs to lose no work, on a machine that does nothing else (by hand; some two minutes): checkpoints every 100 steps, audits
# every 100 steps, gradients looked at in every step. Runs with and without take turns, and the speed of steps in the best of each is
# compared: whatever else the machine does only slows. To that comes what a run does between its steps, as it measures itself (the
# median of all runs).
# safety_costs.sh APPS [ROUNDS]
source "$(dirname "$0")/lib.sh"
limit=120 rounds=${2:-5}

speed() { # speed APPLICATION STEPS OPTION…
  trained 2 "$1" --steps "$2" --plan "$work/plan.$1" "${@:3}"
  summary samples_per_second
}
median() { sort -g | awk '{ x[NR] = $1 } END { print NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'; }
share() { # share SECTION KEY: of training's time, in per cent
  awk -v part="$(sed -n "/^ *\"$1\": {/,/}/s/ *\"$2\": \([0-9.e-]*\),\{0,1\}/\1/p" "$work/summary.json")" -v all="$(summary train_seconds)" \
    'BEGIN { print 100 * part / all }'
}

# cost MOST APPLICATION STEPS SECTION.KEY OPTION…: SECTION.KEY: where a run says what it measured itself, or -
cost() {
  local most=$1 application=$2 steps=$3 own=$4 round found shares=$work/shares
  shift 4
  : >"$work/with" >"$work/without" >"$shares"
  speed "$application" 50 >/dev/null
  for ((round = 0; round < rounds; ++round)); do
    rm -rf "$work/checkpoints"
    speed "$application" "$steps" >>"$work/without"
    speed "$application" "$steps" "$@" >>"$work/with"
    [[ $own == - ]] || share "${own%.*}" "${own#*.}" >>"$shares"
  done
  [[ $own != - ]] || echo 0 >"$shares"
  what="$application ${*/#$work\//}"
  found=$(awk -v a="$(sort -g "$work/without" | tail -1)" -v b="$(sort -g "$work/with" | tail -1)" 'BEGIN { print 100 * (a / b - 1) }')
  echo "$what: steps $found %, between steps $(median <"$shares") % (samples/s without: $(tr '\n' ' ' <"$work/without"), with: $(tr '\n' ' ' <"$work/with"))"
  found=$(awk -v a="$found" -v b="$(median <"$shares")" 'BEGIN { print a + b }')
  expect "less than $most %" at_least "$most" "$found"
}
cost 2 mnist_cnn 500 checkpoint.exposed_seconds --checkpoint-dir "$work/checkpoints" --checkpoint-every 100
cost 1 mnist_cnn 500 guard.audit_seconds --audit-every 100
cost 3 mnist_cnn 500 - --on-nonfinite stop
cost 5 mnist_mlp 6000 - --on-nonfinite stop
