#!/usr/bin/env bash
# Without a GPU to use: --device auto trains on the processor, and a build for GPUs says in one line why; --device cuda ends
# with status 2 and the same reason, said once however many ranks there are.
source "$(dirname "$0")/lib.sh"

expect 'the driver is not linked' test "$(readelf -d "$apps/mnist_softmax" | grep -c 'NEEDED.*libcuda\.so')" -eq 0
expect 'cuBLASLt is loaded by GPU programs alone' test "$(readelf -d "$apps/mnist_softmax" | grep -c 'NEEDED.*libcublasLt')" -eq 0
mpi 1 "$apps/mnist_softmax" --device cuda --steps 2
((status != 0)) || skip 'there is a GPU'
expect_status 2
reason=$(sed -n 's/^ronda: error: --device cuda: \(.*\); use --device cpu$/\1/p' "$work/err")
expect 'a reason' test -n "$reason"

mpi 2 "$apps/mnist_softmax" --device cuda --steps 2 # of ranks that have none alike, none is named
expect_status 2
expect 'the reason once' test "$(grep -cxF "ronda: error: --device cuda: $reason; use --device cpu" "$work/err")" -eq 1
for ranks in 1 2; do
  mpi $ranks "$apps/mnist_softmax" --steps 2
  expect_status 0
  lines=1
  [[ $reason != *'no CUDA'* ]] || lines=0 # nothing to say about what was not built
  expect "$lines lines that say why" test "$(grep -c '^ronda: computing on the processor: ' "$work/err")" -eq $lines
  ((lines == 0)) || expect 'the same reason' grep -qxF "ronda: computing on the processor: $reason" "$work/err"
done
