#!/usr/bin/env bash
# The cluster wants its hosts back: all ranks end at the same step, saved, with status 75, and the resumed run is bitwise right.
source "$(dirname "$0")/lib.sh"
counted=${2:?usage: $0 APPS COUNTED_TRAINING}
limit=60
source "$(dirname "$0")/counting.sh"
export COUNT_DELAY=1000
toy=(--global-batch-size 100 --plan "$work/plan.json")

ranks_here() { # the processes that train in $work
  local process
  for process in $(pgrep -f "counted_training .*$work/"); do
    [[ $(readlink "/proc/$process/exe") != */counted_training ]] || echo "$process"
  done
}
count 4 "${toy[@]}" --steps 1
count 4 "${toy[@]}" --epochs 30
expect_status 0
hash=$(summary parameter_hash)

# preempted HOW STATUS LAUNCHER…: starts on four ranks, does `HOW LAUNCHER RANK…` to them when training goes, and resumes.
preempted() {
  local how=$1 expected=$2 launcher processes waited ends
  attempt=$((attempt + 1))
  COUNT_LOG=$work/log COUNT_ATTEMPT=$attempt COUNT_DELAY=10000 "${@:3}" -n 4 "$counted" "${toy[@]}" --epochs 30 \
    --checkpoint-dir "$work/checkpoints" >"$work/out" 2>"$work/err" &
  launcher=$!
  for ((waited = 0; waited < 600; ++waited)); do
    [[ ! -s $work/log.3 ]] || break
    sleep 0.05
  done
  mapfile -t processes < <(ranks_here)
  what="$how, ${*:3}"
  ((${#processes[@]} == 4)) || fail "found ${#processes[@]} ranks"
  "$how" "$launcher" "${processes[@]}"
  wait "$launcher"
  status=$?
  expect_status "$expected"
  expect 'no error' test "$(grep -c '^ronda: error' "$work/err")" -eq 0
  ends=$(for rank in 0 1 2 3; do tail -1 "$work/log.$rank" | cut -d' ' -f2; done | sort -u)
  expect "all ranks to end at one step, not $ends" test "$(wc -l <<<"$ends")" -eq 1
  # mpirun passes nothing on any more when it was told to end.
  ((expected != 75)) || expect 'the word of it' grep -q "ended after step $ends of 300, saved" "$work/err"
  run "$apps/ronda_checkpoint" verify "$work/checkpoints/step-$ends"
  expect_status 0
  COUNT_DELAY=0 count 4 "${toy[@]}" --epochs 30 --checkpoint-dir "$work/checkpoints" --resume --exact
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
terminate_the_launcher() { kill -TERM "$1"; }
interrupt_the_launcher() { kill -INT "$1"; }
aside preempted terminate_one_rank 75 mpirun
aside preempted terminate_all_ranks_again_and_again 75 mpirun
aside preempted tell_the_launcher 75 mpirun
aside preempted terminate_the_launcher 75 "$apps/ronda_run"
# Open MPI 4.1's mpirun gives the ranks this grace, and its own status tells nothing of them.
if [[ $(mpirun --version) == *'(Open MPI) 4.'* ]]; then
  aside preempted terminate_the_launcher 1 mpirun --mca odls_base_sigkill_timeout 3
  aside preempted interrupt_the_launcher 1 mpirun --mca odls_base_sigkill_timeout 3
fi

# signalled SIGNAL HOW OPTION…: one process, started with `env HOW`, gets SIGNAL after its first step; its status is in $status.
signalled() {
  local process waited signal=$1 how=$2
  shift 2
  COUNT_LOG=$work/log COUNT_ATTEMPT=1 COUNT_DELAY=10000 env "$how" "$counted" "$@" --checkpoint-dir "$work/checkpoints" \
    >"$work/out" 2>"$work/err" &
  process=$!
  for ((waited = 0; waited < 600; ++waited)); do
    [[ ! -s $work/log.0 ]] || break
    sleep 0.05
  done
  kill "-$signal" "$process"
  wait "$process"
  status=$?
}

# Ctrl-C of a process that no launcher has started.
interrupted() {
  local alone=(--global-batch-size 100 --plan "$work/plan.json")
  what='Ctrl-C of one process'
  # A script's background processes otherwise ignore SIGINT.
  signalled INT --default-signal=INT "${alone[@]}" --epochs 30
  expect_status 75
  expect 'the word of it' grep -q 'ended after step .* of 300, saved' "$work/err"
  COUNT_DELAY=0 count 1 "${alone[@]}" --epochs 30 --checkpoint-dir "$work/checkpoints" --resume --exact
  expect_status 0
  all_seen_once 30
}
aside interrupted

# A signal that is ignored when a training starts stays so: SIGHUP under nohup.
hangup() { # hangup STATUS HOW: --ignore-signal=HUP, --default-signal=HUP
  what="SIGHUP, $2"
  signalled HUP "$2" --global-batch-size 100 --epochs 10
  expect_status "$1"
}
aside hangup 75 --default-signal=HUP
aside hangup 0 --ignore-signal=HUP

# A second run on the folder of one that goes on is refused, and takes nothing from it.
second_run() {
  local first waited
  COUNT_LOG=$work/log COUNT_ATTEMPT=1 COUNT_DELAY=200000 "$counted" --global-batch-size 100 --plan "$work/plan.json" --epochs 100 \
    --checkpoint-dir "$work/checkpoints" --checkpoint-every 5 --keep 2 >"$work/first.out" 2>"$work/first.err" &
  first=$!
  for ((waited = 0; waited < 600; ++waited)); do
    [[ ! -e $work/checkpoints/step-10 ]] || break
    sleep 0.05
  done
  COUNT_LOG=$work/second COUNT_ATTEMPT=1 COUNT_DELAY=0 run "$counted" --global-batch-size 100 --plan "$work/plan.json" --epochs 1 \
    --checkpoint-dir "$work/checkpoints"
  what='a second run on one folder'
  expect_status 2
  expect_message "another run's \(host .* process $first"
  expect 'the first run to go on' kill -TERM "$first"
  wait "$first"
  status=$?
  expect_status 75
  COUNT_DELAY=0 count 1 --global-batch-size 100 --plan "$work/plan.json" --epochs 100 --checkpoint-dir "$work/checkpoints" \
    --resume --exact
  expect_status 0
  all_seen_once 100
}
aside second_run

# A limit of time, and the end of an allocation.
limited() {
  count 4 "${toy[@]}" --epochs 10000 --checkpoint-dir "$work/checkpoints" --time-limit 0:00:03
  expect_status 75
  local seconds
  for seconds in 4 16 48; do # which a busy machine may need for its start alone
    SLURM_JOB_END_TIME=$(($(date +%s) + seconds)) count 4 "${toy[@]}" --epochs 10000 --checkpoint-dir "$work/checkpoints" --resume
    expect_status 75
    ! grep -q 'going on from' "$work/err" || return 0
  done
  fail 'never gone on'
}
aside limited
