#!/usr/bin/env bash
# Many containers have 64 MB of /dev/shm, less than the gradients of a large model: training falls back, says so, goes on.
source "$(dirname "$0")/lib.sh"
limit=120
few_images

((EUID == 0)) && unshare -m true 2>/dev/null || skip 'needs root, and the right to mount'
what='64 MB of shared memory'
run unshare -m bash -c 'mount -t tmpfs -o size=64m none /dev/shm && exec "$@"' - \
  mpirun -n 2 "$apps/mnist_mlp" --hidden 2048,2048,2048 --steps 2 --batch-size 16
expect_status 0
expect 'a word on shared memory' grep -Eiq 'ronda: warning: .*(shared memory|/dev/shm)' "$work/err"

# Ranks that are to share one copy do not take one each without a word.
what='one copy in 64 MB of shared memory'
run unshare -m bash -c 'mount -t tmpfs -o size=64m none /dev/shm && exec "$@"' - \
  mpirun -n 2 "$apps/mnist_mlp" --hidden 4096,4096 --steps 2 --batch-size 16 --strategy sharded --one-copy
expect_status 1
expect_message '--one-copy.* has no room in the node.s memory: .*/dev/shm has .* free'
