#!/usr/bin/env bash
# Ranks are killed at random, some while they write a checkpoint: every restart goes on, by another strategy perhaps, and in the
# end the parameters are those of a training to which nothing happened, and every sample was used once an epoch.
# kills.sh APPS COUNTED_TRAINING [KILLS [SEED]]       100 kills: some two minutes
source "$(dirname "$0")/lib.sh"
counted=${2:?usage: $0 APPS COUNTED_TRAINING [KILLS [SEED]]} kills=${3:-10} RANDOM=${4:-${RONDA_TEST_SEED:-1}}
limit=60
source "$(dirname "$0")/counting.sh"
ranks=3
export COUNT_DELAY=1000
toy=(--global-batch-size 100 --quiet)
# What may take turns with the same bits.
all_gradients=('--strategy mirrored' '--strategy sharded' '--strategy sharded --one-copy')
own_gradients=('--strategy sharded --shard-gradients' '--strategy sharded --shard-gradients --one-copy')
hashes=()
for way in "${all_gradients[0]}" "${own_gradients[0]}"; do
  read -ra options <<<"$way --plan $work/plan${#hashes[@]}.json"
  count $ranks "${toy[@]}" "${options[@]}" --steps 1
  count $ranks "${toy[@]}" "${options[@]}" --epochs 30
  expect_status 0
  hashes+=("$(summary parameter_hash)")
  all_seen_once 30
  rm -f "$work"/log.*
done
toy+=(--epochs 30)

# kill_from_outside: a random rank of the next start, at a random time.
kill_from_outside() {
  local waited process processes=()
  for ((waited = 0; waited < 200 && ${#processes[@]} < ranks; ++waited)); do
    sleep 0.02
    processes=()
    for process in $(pgrep -f "counted_training .*$work"); do
      [[ $(readlink "/proc/$process/exe") != */counted_training ]] || processes+=("$process")
    done
  done
  sleep "0.$((RANDOM % 6))$((RANDOM % 10))"
  ((${#processes[@]} < ranks)) || kill -9 "${processes[RANDOM % ranks]}" 2>/dev/null
}

restarts=0 done_with=0 writing=0
while ((restarts < kills)) || ((done_with < 2)); do # trainings, the first of which has half of the kills at most
  kind=$((done_with % 2)) most=$kills
  ways=("${all_gradients[@]}")
  ((kind == 0)) || ways=("${own_gradients[@]}")
  ((done_with > 0)) || most=$((kills / 2))
  rm -rf "$work/checkpoints" "$work"/log.* "$work/metrics"
  for ((start = 0; start < 100; ++start)); do # starts
    read -ra options <<<"${ways[RANDOM % ${#ways[@]}]}"
    rank=$((RANDOM % ranks)) step=0
    if [[ -d $work/checkpoints ]]; then
      step=$(find "$work/checkpoints" -maxdepth 1 -name 'step-*' | sed 's/.*-//' | sort -n | tail -1)
    fi
    step=$((${step:-0} + 1 + RANDOM % 60))
    if ((restarts < most)); then
      case $((RANDOM % 4)) in
        0) options+=(--inject "kill@$step:$rank") ;;
        1) options+=(--inject "kill-write@$step:$rank") ;;
        2) options+=(--inject "kill-rename@$step") ;;
        3) kill_from_outside & killer=$! ;;
      esac
      [[ ${options[*]} != *kill-* ]] || writing=$((writing + 1))
    fi
    count $ranks "${toy[@]}" --checkpoint-dir "$work/checkpoints" --checkpoint-every 5 --keep 2 --resume --exact \
      --plan "$work/plan$kind.json" --metrics "$work/metrics" "${options[@]}"
    [[ -z ${killer:-} ]] || wait "$killer"
    killer=
    ((status != 0)) || break
    restarts=$((restarts + 1))
    expect 'no error of ours' test "$(grep -c '^ronda: error' "$work/err")" -eq 0
  done
  expect_status 0
  [[ $(summary parameter_hash) == "${hashes[kind]}" ]] || fail "parameters $(summary parameter_hash), expected ${hashes[kind]}"
  all_seen_once 30
  expect 'a line of metrics for each step' test "$(sed 's/{"step": \([0-9]*\).*/\1/' "$work/metrics" | tr '\n' ' ')" = "$(echo {1..300}) "
  expect 'nothing half-written' test -z "$(find "$work/checkpoints" -name '.*' ! -name .lock)"
  done_with=$((done_with + 1))
done
[[ -s $failed ]] || echo "$restarts kills ($writing meant for a rank that writes) in $done_with trainings of 300 steps: nothing lost"
