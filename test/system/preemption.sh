#!/usr/bin/env bash
# The cluster wants its hosts back: all ranks end at the same step, saved, with status 75, and the resumed run is bitwise right.
source "$(dirname "$0")/lib.sh"
counted=${2:?usage: $0 APPS COUNTED_TRAINING}
limit=60
source "$(dirname "$0")/counting.sh"
export COUNT_DELAY=1000
toy=(--global-batch-size 100 --plan "$work/plan.json")

ranks_of() { # ranks_of LAUNCHER: its children that train
  local process
  for process in $(ps -o pid= --ppid "$1"); do
    [[ $(readlink "/proc/$process/exe") != */counted_training ]] || echo "$process"
  done
}
count 4 "${toy[@]}" --steps 1
count 4 "${toy[@]}" --epochs 30
expect_status 0
hash=$(summary parameter_hash)

# preempted HOW: starts on four ranks, does `HOW LAUNCHER RANK…` to them when training goes, and resumes.
preempted() {
  local how=$1 launcher processes waited
  rm -rf "$work/checkpoints" "$work"/log.*
  attempt=$((attempt + 1))
  COUNT_LOG=$work/log COUNT_ATTEMPT=$attempt mpirun -n 4 "$counted" "${toy[@]}" --epochs 30 --checkpoint-dir "$work/checkpoints" \
    >"$work/out" 2>"$work/err" &
  launcher=$!
  for ((waited = 0; waited < 300; ++waited)); do
    [[ ! -s $work/log.3 ]] || break
    sleep 0.05
  done
  mapfile -t processes < <(ranks_of "$launcher")
  what=$how
  ((${#processes[@]} == 4)) || fail "found ${#processes[@]} ranks"
  "$how" "$launcher" "${processes[@]}"
  wait "$launcher"
  status=$?
  expect_status 75
  expect 'no error' test "$(grep -c '^ronda: error' "$work/err")" -eq 0
  local ends
  ends=$(for rank in 0 1 2 3; do tail -1 "$work/log.$rank" | cut -d' ' -f2; done | sort -u)
  expect "all ranks to end at one step, not $ends" test "$(wc -l <<<"$ends")" -eq 1
  expect 'the word of it' grep -q "ended after step $ends of 300, saved" "$work/err"
  run "$apps/ronda_checkpoint" verify "$work/checkpoints/step-$ends"
  expect_status 0
  count 4 "${toy[@]}" --epochs 30 --checkpoint-dir "$work/checkpoints" --resume --exact
  expect_status 0
  [[ $(summary parameter_hash) == "$hash" ]] || fail "$how: parameters $(summary parameter_hash), expected $hash"
  all_seen_once 30
}
terminate_one_rank() { kill -TERM "$4"; }
terminate_all_ranks_again_and_again() {
  local i
  for i in 1 2 3 4 5 6 7 8 9 10; do kill -TERM "${@:2}" 2>/dev/null; sleep 0.01; done
}
tell_the_launcher() { kill -USR1 "$1"; }
preempted terminate_one_rank
preempted terminate_all_ranks_again_and_again
preempted tell_the_launcher

# A limit of time, and the end of an allocation.
rm -rf "$work/checkpoints"
count 4 "${toy[@]}" --epochs 10000 --checkpoint-dir "$work/checkpoints" --time-limit 0:00:03
expect_status 75
SLURM_JOB_END_TIME=$(($(date +%s) + 4)) count 4 "${toy[@]}" --epochs 10000 --checkpoint-dir "$work/checkpoints" --resume
expect_status 75
expect 'to have gone on' grep -q 'going on from' "$work/err"
