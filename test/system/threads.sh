#!/usr/bin/env bash
# Threads and cores: more threads than a rank has cores for are told, with the remedy, by the training and by ronda_doctor; and threads
# that wait do not keep cores from others.
source "$(dirname "$0")/lib.sh"
unset OMP_WAIT_POLICY GOMP_SPINCOUNT OMPI_MCA_hwloc_base_binding_policy RONDA_SHARED_CORES OMP_NUM_THREADS
core=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//') # one that we may use
cores=$(nproc)
few_images

warned() { # warned REGEX: one warning of threads, among the first five lines
  expect "one warning, of '$1'" test "$(grep -cE "^ronda: warning: .*computes with .*$1" "$work/err")" -eq 1
  expect 'it early' grep -qE '^ronda: warning: .*computes with' <(head -5 "$work/err")
}
silent() { expect 'no warning' test "$(grep -c 'warning' "$work/err")" -eq 0; }
bound() { run taskset -c "$core" "$apps/mnist_softmax" --steps 2 "$@"; }

what='threads on a core less'
bound --threads 2
expect_status 0
if ((cores > 1)); then
  warned "2 threads on 1 core of [0-9]+, to which it was bound; .*--bind-to none.*--threads 1"
else
  warned '2 threads on 1 core of 1, and there are no more'
fi
what='threads that were not asked for'
bound
silent
expect 'one thread' grep -q 'cpu with 1 thread each' "$work/err"
many=$((4 * cores))
mpi 1 "$apps/mnist_softmax" --steps 2 --threads $many
warned "$many threads"
mpi 2 "$apps/mnist_softmax" --steps 2 --threads 4
((cores > 7)) || warned '4 threads'

# Settings of OpenMP: ranks use as many threads as it grants, and numbers do not depend on them.
if ((cores > 1)); then
  trained 1 mnist_softmax --steps 2 --threads 2
  wanted=$(summary parameter_hash)
  for setting in OMP_DYNAMIC=true OMP_PROC_BIND=true OMP_PLACES=threads; do
    export "${setting?}"
    trained 1 mnist_softmax --steps 2 --threads 2
    expect "$setting to change nothing" test "$(summary parameter_hash)" = "$wanted"
    run "$apps/mnist_softmax" --steps 2 --data "$few"
    expect "$setting: all cores" grep -q "cpu with $cores threads each" "$work/err"
    silent
    unset "${setting%%=*}"
  done
  for setting in OMP_THREAD_LIMIT=1 OMP_MAX_ACTIVE_LEVELS=0 OMP_NUM_THREADS=1; do
    what=$setting
    run env "$setting" "$apps/mnist_softmax" --steps 2 --data "$few"
    expect_status 0
    expect 'one thread' grep -q 'cpu with 1 thread each' "$work/err"
    expect 'one note of it' test "$(grep -c "^ronda: $setting: a rank computes with 1 thread and has $cores cores" "$work/err")" -eq 1
  done
  what='more threads than OpenMP grants'
  run env OMP_THREAD_LIMIT=1 "$apps/mnist_cnn" --steps 2 --threads 2 --data "$few"
  expect_status 0
  expect 'one thread' grep -q 'cpu with 1 thread each' "$work/err"
  expect 'a note of it' grep -q '^ronda: --threads 2: a rank computes with 1 thread, .*OMP_THREAD_LIMIT=1' "$work/err"
  run env OMP_THREAD_LIMIT=1 "$apps/ronda_doctor"
  expect 'the doctor to say so' grep -qE '^off +threads +OMP_THREAD_LIMIT=1: ' "$work/out"
  expect 'a training' grep -qE '^ +training +works' "$work/out"
fi

# Ranks with different numbers of threads, as on hosts with different numbers of ranks.
uneven() { # uneven APPLICATION OPTION…: rank 0 has two threads
  what="unequal threads: $*"
  run mpirun -n 2 bash -c 'exec "$@" --threads $((2 - OMPI_COMM_WORLD_RANK))' ranks "$apps/$1" "${@:2}" --steps 3 --data "$few"
  expect_status 0
  expect 'the numbers of threads' grep -q 'cpu with 1 to 2 threads each' "$work/err"
}
for strategy in mirrored sharded local_sgd 'parameter_server --servers 1'; do
  # shellcheck disable=SC2086  # a name and its options
  uneven mnist_mlp --hidden 256 --strategy $strategy
done
uneven mnist_cnn --plan "$work/plan.json"
uneven mnist_cnn --plan "$work/plan.json"
what='the plan of ranks with other threads'
run mpirun -n 2 "$apps/mnist_cnn" --threads 1 --steps 3 --data "$few" --plan "$work/plan.json"
expect_status 2
expect_message "threads is '1' here, the plan has '2 \\(rank 0\\), 1 \\(rank 1\\)'"

# A program that was started through the dynamic loader is started through it again.
loader=$(ls /lib64/ld-linux-*.so.2 /lib/ld-linux-*.so.1 2>/dev/null | head -1)
if [[ -n $loader ]]; then
  what='started by the dynamic loader'
  run "$loader" --library-path /usr/lib "$apps/mnist_softmax" --steps 2 --data "$few"
  expect_status 0
  expect 'a result' grep -q '^test accuracy' "$work/out"
fi

# What mpirun binds: a rank alone gets one core, unless more are asked for.
if ((cores > 1)); then
  alone=(env -u OMPI_MCA_rmaps_base_oversubscribe -u PRTE_MCA_rmaps_default_mapping_policy mpirun -n 1)
  what='mpirun --bind-to core, 2 threads'
  run "${alone[@]}" --bind-to core "$apps/mnist_softmax" --steps 2 --threads 2
  warned '2 threads on 1 core of'
  run "${alone[@]}" --bind-to core "$apps/ronda_doctor"
  expect 'the doctor to say so' grep -qE '^off +cores .*: bound by mpirun, which leaves [0-9]+ to nobody; .*--bind-to none' "$work/out"
  what='mpirun --bind-to none, 2 threads'
  run "${alone[@]}" --bind-to none "$apps/mnist_softmax" --steps 2 --threads 2
  silent
fi

tries=0
# A quota, by a control group of version 1 or 2 of our own, where that may be made.
quota() { # quota CORES: sets `group`
  local folder
  for folder in /sys/fs/cgroup/cpu /sys/fs/cgroup; do
    group=$folder/ronda-test-$$
    mkdir "$group" 2>/dev/null || continue
    if echo $(($1 * 100000)) >"$group/cpu.cfs_quota_us" || echo "$(($1 * 100000)) 100000" >"$group/cpu.max"; then return 0; fi 2>/dev/null
    rmdir "$group"
  done
  return 1
}
if ((cores > 1)) && quota 1; then
  inside() { bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"; }
  export -f inside && export group
  what='a quota of one core'
  run bash -c 'inside "$@"' inside "$apps/mnist_softmax" --steps 2
  silent
  expect 'one thread' grep -q 'cpu with 1 thread each' "$work/err"
  run bash -c 'inside "$@"' inside "$apps/mnist_softmax" --steps 2 --threads 2
  warned '2 threads on the time of 1 core, .*quota'
  run bash -c 'inside "$@"' inside mpirun -n 2 "$apps/mnist_softmax" --steps 2
  warned '1 thread on the time of 0.5 cores, .*quota'
  run bash -c 'inside "$@"' inside "$apps/ronda_doctor"
  expect 'the doctor to say so' grep -qE '^off +cores .*, time for 1 of them; ' "$work/out"
  until rmdir "$group" 2>/dev/null || ((++tries > 50)); do sleep 0.1; done # its last processes are going
fi

# How long threads look for work is what the environment of the process says, which a user may have set.
spins() { # spins VARIABLE… COMMAND…: what the environment of the training says of that; its name stays
  what="spinning with $1"
  env "$@" --epochs 1000 --quiet >"$work/out" 2>"$work/err" &
  local process=$! i
  for ((i = 0; i < 100; ++i)); do # before its exec the process is this shell's copy, with what this was started with
    found=
    [[ $(cat "/proc/$process/comm") != mnist_softmax ]] ||
      found=$(tr '\0' '\n' <"/proc/$process/environ" | grep -E '^(GOMP_SPINCOUNT|OMP_WAIT_POLICY)=')
    [[ -z $found ]] || break
    sleep 0.1
  done
  expect 'its own name' test "$(cat "/proc/$process/comm")" = mnist_softmax
  kill "$process"
  wait "$process"
}
if ((cores > 1)); then
  unset OMP_WAIT_POLICY  # which tests have
  spins RONDA_TEST=1 "$apps/mnist_softmax"
  expect 'a short time' test "$found" = GOMP_SPINCOUNT=3000
  spins OMP_WAIT_POLICY=active "$apps/mnist_softmax"
  expect "the user's own" test "$found" = OMP_WAIT_POLICY=active
fi
