#!/usr/bin/env bash
# What is said is so: of the next run, of sizes, of numbers of things, and to terminals.
source "$(dirname "$0")/lib.sh"
limit=60

# Whether the next run starts at once depends on whether what was timed could be kept.
what='a cache'
RONDA_CACHE_DIR=$work/cache run "$apps/mnist_softmax" --steps 2
expect 'the promise' grep -q 'what was timed is kept: the next run starts at once' "$work/err"
RONDA_CACHE_DIR=$work/cache run "$apps/mnist_softmax" --steps 2
expect 'that it does' test "$(grep -cE 'timing|timed' "$work/err")" -eq 0
what='no cache'
for place in /proc/nowhere "$apps/mnist_softmax"; do
  RONDA_CACHE_DIR=$place run "$apps/mnist_softmax" --steps 2
  expect_status 0
  expect 'no promise' grep -q 'what was timed could not be kept (.*): the next run times again; RONDA_CACHE_DIR' "$work/err"
  expect 'no promise beside' test "$(grep -c 'starts at once' "$work/err")" -eq 0
done

# One is one, and little is not 0.0 MiB.
mpi 1 "$apps/mnist_softmax" --steps 1 --batch-size 1 --checkpoint-dir "$work/checkpoints"
expect 'one of each' grep -q '1 replica on 1 host, .* 1 epoch, 1 step$' "$work/err"
for action in list show; do
  mpi 1 "$apps/ronda_checkpoint" $action "$work/checkpoints"
  expect 'one rank' grep -qE '\b1 rank\b' "$work/out"
  expect 'no one ranks' test "$(grep -cE '\b1 (rank|host|step|sample|epoch)s\b' "$work/out")" -eq 0
done
mpi 1 "$apps/bench_allreduce" --max-bytes 8 --iterations 1 --rounds 1 --warmup 1
expect 'one rank on one host' grep -qE '^# 1 rank on 1 host \(' "$work/out"
RONDA_SHARED_MEMORY_LIMIT=1 mpi 2 "$apps/mnist_softmax" --steps 1
expect 'what is free' grep -q 'has 1 B free' "$work/err"
expect 'what is needed' test "$(grep -c ' 0\.0 MiB' "$work/err")" -eq 0

# A training that was over when it went on had no speed.
mpi 1 "$apps/mnist_softmax" --steps 1 --batch-size 1 --checkpoint-dir "$work/checkpoints" --resume
expect_status 0
expect 'the accuracy alone' grep -qE '^test accuracy [0-9.]+ %$' "$work/out"

# Escape codes are for terminals that know them.
if script -qec true /dev/null >/dev/null 2>&1; then
  for kind in xterm dumb; do
    what="a terminal of kind $kind"
    run env TERM=$kind script -qec "'$apps/mnist_softmax' --steps 400" /dev/null
    escapes=$(grep -c $'\033' "$work/out")
    if [[ $kind == xterm ]]; then expect 'a bar' test "$escapes" -gt 0; else expect 'no escape codes' test "$escapes" -eq 0; fi
  done
else
  echo "not checked: a terminal's bar, for script(1) can make no terminal here"
fi
