#!/usr/bin/env bash
# In the midst of training over the network a cable is cut or a host freezes: no rank is left after the timeout and 10 s, and a message
# names who is missing. The job is over then too, where mpirun still reaches the hosts or ronda_run started it.
source "$(dirname "$0")/lib.sh"
limit=110
timeout=3
unset OMPI_MCA_btl # over the network

# What happens on the head of the bed: train, wait for the first steps, do it, and see how long ranks and mpirun last.
# on_head FAULT FOLDER LAUNCHER COMMAND…: leaves FOLDER/ranks and FOLDER/mpirun, in milliseconds from the fault.
cat >"$work/on_head" <<'END'
fault=$1 folder=$2
shift 2
"$@" &
job=$!
for ((i = 0; i < 800; ++i)); do # long, for a busy machine
  [[ ! -s $folder/metrics ]] || break
  sleep 0.1
done
[[ -s $folder/metrics ]] || { echo 'training did not begin'; exit 99; }
start=$(date +%s%N)
passed() { echo $((($(date +%s%N) - start) / 1000000)); }
running() { # not those of a frozen host, and not the dead that nobody has waited for
  local process
  for process in $(pgrep mnist_mlp); do
    ! grep -q '^State:[[:space:]]*[RSD]' "/proc/$process/status" 2>/dev/null || return 0
  done
  return 1
}
eval "$fault"
for ((i = 0; i < 150; ++i)); do
  [[ -s $folder/ranks ]] || running || passed >"$folder/ranks"
  [[ -s $folder/mpirun || -d /proc/$job ]] || passed >"$folder/mpirun"
  [[ ! -s $folder/ranks || ! -s $folder/mpirun ]] || break
  sleep 0.1
done
! kill -KILL $job 2>/dev/null || exit 98
wait $job
END

# lost HOSTS RANKS FAULT REGEX OPTION…
launcher=(mpirun)
mpirun_ends=yes
lost() {
  local hosts=$1 ranks=$2 fault=$3 regex=$4 took
  shift 4
  what="$fault, $hosts hosts of $ranks: $*"
  rm -f "$work/metrics" "$work/ranks" "$work/mpirun"
  run "$beds/netns.sh" "$hosts" "$ranks" bash "$work/on_head" "$fault" "$work" \
    "${launcher[@]}" "$apps/mnist_mlp" --quiet --epochs 100000 --metrics "$work/metrics" --communication-timeout $timeout "$@"
  ((status != 77)) || skip "$(tail -1 "$work/err")"
  ((status != 0)) || fail 'exit status 0'
  expect_message "$regex"
  local who=(ranks mpirun) each
  [[ $mpirun_ends == yes ]] || who=(ranks)
  for each in "${who[@]}"; do
    took=$(cat "$work/$each" 2>/dev/null || echo 999999)
    ((took < 1000 * (timeout + 10))) || fail "$each: still there after $took ms"
    echo "$what: $each gone after $took ms, status $status"
  done
}

waits='of step [0-9]+ has stood still for 3 s, '
# Where the last message of an allreduce is lost, one rank still waits for it, and the other in the next allreduce.
one_behind='waiting for rank [01] on ronda[12]: it is in bucket'
lost 2 1 'bed cut ronda2' "${waits}(all ranks wait in it .* cut\\? rank . on ronda. waits for rank|$one_behind)" --allreduce ring
lost 2 1 'bed cut ronda2' "${waits}(all ranks wait in it|$one_behind)" --allreduce mpi --progress thread
lost 2 2 'bed on ronda2 bash -c "kill -STOP \$(pgrep -o mnist_mlp)"' \
  "${waits}waiting for rank [23] on ronda2: its process is stopped, last seen"
# mpirun waits for a host that does not answer for longer, where it has no ranks beside it that end it.
mpirun_ends=no
lost 2 1 'bed cut ronda2 all' "${waits}waiting for rank 1 on ronda2: nothing is heard" --progress inline
lost 2 1 'bed freeze ronda2' "${waits}waiting for rank 1 on ronda2: nothing is heard" --allreduce mpi
lost 3 1 'bed cut ronda1 all' "${waits}waiting for rank 0 on ronda1: nothing is heard" --progress thread
# Unless ronda_run started it, which ends it: it has heard that the job has failed.
mpirun_ends=yes
launcher=("$apps/ronda_run" --hosts ronda1,ronda2 --agent 'bed on' --grace 1 --max-failures 0
  --launcher "$(command -v mpirun) --bind-to none --oversubscribe")
for fault in 'bed freeze ronda2' 'bed cut ronda2 all'; do
  lost 2 1 "$fault" "${waits}waiting for rank 1 on ronda2: nothing is heard" --checkpoint-dir "$work/checkpoints"
done
