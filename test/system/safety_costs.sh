#!/usr/bin/env bash
# What it costs to lose no work, on a machine that does nothing else (by hand; some two minutes): checkpoints every 100 steps, audits
# every 100 steps, gradients looked at in every step. Runs with and without take turns; what counts is the median of their ratios, and
# for what is measured within a run, its share of that run's time.   safety_costs.sh APPS [ROUNDS]
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

# cost MOST APPLICATION STEPS SECTION.KEY OPTION…: in per cent; SECTION.KEY: where a run says what it measured itself, or -
cost() {
  local most=$1 application=$2 steps=$3 own=$4 round with without costs shares found
  shift 4
  costs=$work/costs shares=$work/shares
  : >"$costs" >"$shares"
  speed "$application" 50 >/dev/null
  for ((round = 0; round < rounds; ++round)); do
    rm -rf "$work/checkpoints"
    without=$(speed "$application" "$steps")
    with=$(speed "$application" "$steps" "$@")
    awk -v a="$without" -v b="$with" 'BEGIN { print 100 * (a / b - 1) }' >>"$costs"
    [[ $own == - ]] || share "${own%.*}" "${own#*.}" >>"$shares"
  done
  what="$application ${*/#$work\//}"
  found=$(median <"$costs")
  echo "$what: $found % (rounds: $(tr '\n' ' ' <"$costs")); measured within: $(median <"$shares") % (most $(sort -g "$shares" | tail -1))"
  [[ $own == - ]] || found=$(median <"$shares")
  expect "less than $most %" at_least "$most" "$found"
}
cost 2 mnist_cnn 500 checkpoint.exposed_seconds --checkpoint-dir "$work/checkpoints" --checkpoint-every 100
cost 1 mnist_cnn 500 guard.audit_seconds --audit-every 100
cost 2 mnist_cnn 500 - --on-nonfinite stop
cost 5 mnist_mlp 4000 - --on-nonfinite stop
