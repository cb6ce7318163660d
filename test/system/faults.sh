#!/usr/bin/env bash
# A rank dies, a person interrupts, a disk is full, in the midst of training: all ranks are gone within 10 s.
source "$(dirname "$0")/lib.sh"
unset OMPI_MCA_odls_base_sigkill_timeout # the launcher as people have it

living() { # living PROCESS…: those that still run; one that nobody has waited for does not
  local process
  for process in "$@"; do
    grep -q '^State:[[:space:]]*[^ZX]' "/proc/$process/status" 2>/dev/null && echo "$process"
  done
}
ranks_of() { # ranks_of MPIRUN: its children that are ours
  local process
  for process in $(ps -o pid= --ppid "$1"); do
    [[ $(readlink "/proc/$process/exe") != "$apps"/* ]] || echo "$process"
  done
}

# breaks HOW RANKS: starts a training that would take hours, does `HOW MPIRUN RANK…` to it when it has begun.
breaks() {
  local how=$1 ranks=$2 launcher processes waited
  what="$how, $ranks ranks"
  rm -f "$work/metrics"
  set -m # a process group of its own, as a shell gives to what a person starts
  mpirun -n "$ranks" "$apps/mnist_mlp" --quiet --epochs 100000 --metrics "$work/metrics" --communication-timeout 3 \
    >"$work/out" 2>"$work/err" &
  launcher=$!
  set +m
  for ((waited = 0; waited < 300; ++waited)); do
    [[ ! -s $work/metrics ]] || break
    sleep 0.1
  done
  expect 'training to begin' test -s "$work/metrics"
  mapfile -t processes < <(ranks_of "$launcher")
  ((${#processes[@]} == ranks)) || fail "found ${#processes[@]} ranks"
  "$how" "$launcher" "${processes[@]}"
  for ((waited = 0; waited < 100; ++waited)); do
    [[ -n $(living "$launcher" "${processes[@]}") ]] || break
    sleep 0.1
  done
  [[ -z $(living "$launcher" "${processes[@]}") ]] || fail "still there after 10 s: $(living "$launcher" "${processes[@]}")"
  kill -9 "$launcher" "${processes[@]}" 2>/dev/null
  wait "$launcher" 2>/dev/null
  status=$?
  ((status != 0)) || fail 'exit status 0'
  ((waited == 0)) || echo "$what: gone after $((waited / 10)).$((waited % 10)) s, status $status"
}

kill_first() { kill -9 "$2"; }
kill_last() { kill -9 "${!#}"; }
kill_launcher() { kill -9 "$1"; }
stop_last() { kill -STOP "${!#}"; }
interrupt() { kill -INT "$1"; }
terminate() { kill -TERM "$1"; }

breaks kill_first 2
breaks kill_last 3
breaks kill_launcher 2
breaks stop_last 3
expect_message '(bucket|planning) .* of step [0-9]+ has stood still .* waiting for rank 2 on .* its process is stopped'
breaks interrupt 2
breaks terminate 2

# A rank that is slow is named, and no other.
slow=(--steps 30 --batch-size 8 --progress inline --verbose)
for late in 0 2; do
  mpi 3 "$apps/mnist_softmax" "${slow[@]}" --inject slow@1:$late
  expect_status 0
  expect "rank $late to be named" grep -aq "the others waited for rank $late on " "$work/out" "$work/err"
  expect 'no other' test "$(cat "$work/out" "$work/err" | grep -ac 'the others waited for rank')" = 1
done

# The disk of rank 0's metrics is full: one warning, and the training runs to its end.
mpi 2 "$apps/mnist_mlp" --steps 200 --metrics /dev/full
expect_status 0
expect 'one warning' test "$(grep -c 'warning.*/dev/full' "$work/err")" -eq 1
