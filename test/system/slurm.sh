#!/usr/bin/env bash
# The batch scripts under Slurm itself, on two nodes that are this machine (see test/beds/slurm.sh).
source "$(dirname "$0")/lib.sh"
limit=120
scripts=$beds/../../scripts/slurm

if [[ -z ${RONDA_TEST_IN_SLURM:-} ]]; then # once more, in a cluster, which takes a while to start
  ((EUID == 0)) || skip 'needs root'
  for tool in unshare ip munged slurmctld slurmd sbatch; do
    command -v $tool >/dev/null || skip "needs $tool"
  done
  run "$beds/slurm.sh" 2 2 true
  ((status == 0)) || skip "no Slurm here: $(tail -1 "$work/err")"
  RONDA_TEST_IN_SLURM=yes "$beds/slurm.sh" 2 2 bash "$0" "$apps"
  exit
fi
export OMPI_MCA_btl=^ofi # over the network

# Submits, waits for the end (sbatch --wait looks every ten seconds only), and passes on the job's exit status.
cat >"$work/submit" <<'END'
job=$(sbatch --parsable "$@") || exit
while [[ -n $(squeue --noheader --jobs="$job") ]]; do sleep 0.2; done
exit "$(scontrol show job "$job" | sed -n 's/.* ExitCode=\([0-9]*\):.*/\1/p' | sort -n | tail -n 1)"
END
submit() { # submit OPTION… SCRIPT ARGUMENT…: two nodes of two ranks; what the job says goes to $work/out and $work/err
  what="sbatch ${*/#$apps\//}"
  rm -f "$work/summary.json"
  touch "$work/job.out" "$work/job.err"
  run bash "$work/submit" --ntasks-per-node=2 --output="$work/job.out" --error="$work/job.err" "$@"
  mv "$work/job.out" "$work/out"
  mv "$work/job.err" "$work/err"
}
train=("$apps/mnist_mlp" --quiet --steps 5 --summary-json "$work/summary.json")

for script in mpirun srun; do
  submit "$scripts/$script.sbatch" "${train[@]}"
  expect_status 0
  expect_summary world_size 4
  expect_summary hosts 2
  submit "$scripts/$script.sbatch" "$apps/mnist_mlp" --optimizer adamant
  expect_status 2
  expect_message 'adamant'
done

# A batch script may start fewer ranks than it has room for.
submit --wrap="mpirun -n 3 ${train[*]}"
expect_status 0
expect_summary world_size 3
submit --wrap="${train[*]}"
expect_status 0
expect_summary world_size 1

# A job that has to make room is saved, goes back into the queue by itself, and goes on: to the same bits.
for script in mpirun srun; do
  long=("$scripts/$script.sbatch" "$apps/mnist_mlp" --steps 200 --plan "$work/plan.$script.json" --summary-json "$work/summary.json")
  submit "${long[@]}"
  expect_status 0
  hash=$(summary parameter_hash)
  submit --open-mode=append "${long[@]}" --checkpoint-dir "$work/checkpoints.$script" --resume --exact --inject stop@120:2
  expect_status 0
  expect 'to have ended early' grep -q 'ended after step 120 of 200, saved' "$work/err"
  expect 'to have gone on' grep -q 'going on from .*/step-120' "$work/err"
  [[ -n $hash && $(summary parameter_hash) == "$hash" ]] || fail "parameters $(summary parameter_hash), expected $hash"
done

# Without checkpoints the signal ahead of the end is only a warning.
for script in mpirun srun; do
  batch=
  [[ $script == srun ]] || batch=--batch # where that script asks for it
  rm -f "$work/metrics"
  (
    until [[ -s $work/metrics ]]; do sleep 0.1; done
    scancel $batch --signal=USR1 "$(squeue --noheader --format=%i)"
  ) &
  submit "$scripts/$script.sbatch" "$apps/mnist_mlp" --quiet --steps 100 --metrics "$work/metrics" --inject slow@1:0
  expect_status 0
  expect 'a warning' test "$(grep -c '^ronda: warning: .*nothing of it is saved without --checkpoint-dir' "$work/err")" -eq 1
  expect 'all steps' test "$(wc -l <"$work/metrics")" -eq 100
done

# From any folder: the default program is that of the script's repository; a missing one is an error.
mkdir -p "$work/repository/scripts/slurm" "$work/repository/build/release/apps"
cp "$scripts/srun.sbatch" "$work/repository/scripts/slurm"
printf '#!/bin/sh\ntouch "%s/ran"\n' "$work" >"$work/repository/build/release/apps/mnist_cnn"
chmod +x "$work/repository/build/release/apps/mnist_cnn"
submit --chdir=/ "$work/repository/scripts/slurm/srun.sbatch"
expect_status 0
expect 'the default program' test -e "$work/ran"
submit --chdir="$work" "$scripts/srun.sbatch" apps/nothing
expect_status 2
expect 'the path told' grep -q "no program apps/nothing in $work" "$work/err"

# Each task of an array has its own seed and folder, and requeues only itself.
submit --array=1-2 --output="$work/task.%a" --error="$work/task.%a" "$scripts/srun.sbatch" "$apps/mnist_softmax" --steps 10 --seed %a --checkpoint-dir "$work/array.%a" \
  --resume --inject stop@5:0 --summary-json "$work/summary.%a.json"
expect_status 0
for task in 1 2; do
  expect 'to have ended early and gone on, once' test "$(grep -c 'ended after step 5 of 10, saved' "$work/task.$task")$(grep -c 'going on from .*/step-5:' "$work/task.$task")" = 11
done
expect 'another training each' test "$(grep -h parameter_hash "$work"/summary.[12].json | sort -u | wc -l)" -eq 2

# ronda_run takes the allocation's hosts, reaches them by srun, and starts again what has lost a rank.
cat >"$work/launcher" <<END
#!/usr/bin/env bash
[[ -e $work/died ]] || { touch "$work/died"; set -- "\$@" --inject kill@50:3; }
exec mpirun "\$@"
END
chmod +x "$work/launcher"
submit --nodes=2 --wrap="$apps/ronda_run --launcher $work/launcher --backoff 0.1 $apps/mnist_mlp --quiet --steps 100 --checkpoint-dir $work/checkpoints.run --checkpoint-every 10 --summary-json $work/summary.json"
expect_status 0
expect_summary steps 100
expect_summary world_size 4
expect 'a failure' grep -q 'ronda_run: 2 starts, 1 failure, .*goodput' "$work/err"
