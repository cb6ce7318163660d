#!/usr/bin/env bash
# bench_allreduce checks what it measures: every type, every operation, and every algorithm give right results, and the file has them.
source "$(dirname "$0")/lib.sh"
limit=60

bench() { # bench RANKS OPTION…: status 0; leaves $work/results.json
  rm -f "$work/results.json"
  mpi "$1" "$apps/bench_allreduce" --max-bytes 64K --factor 32 --iterations 2 --rounds 2 --warmup 1 --json "$work/results.json" "${@:2}"
  expect_status 0
  expect 'results' grep -q '"microseconds"' "$work/results.json"
  expect 'no wrong results' test "$(grep -c '"wrong": 0' "$work/results.json")" -eq "$(grep -c '"wrong"' "$work/results.json")"
}

for dtype in float32 float64 float16 bfloat16 int8 uint8 int32 int64; do bench 3 --dtype $dtype --algorithm all; done
for op in mean min max prod; do bench 3 --op $op; done
for compression in bf16 fp16 int8 int4 2bit; do
  bench 3 --algorithm all --compression $compression
  expect 'what is sent compressed' test "$(grep -c "\"compression\": \"$compression\"" "$work/results.json")" -gt 0
done
expect 'auto beside them' grep -q '"asked": "auto"' "$work/results.json"
bench 2 --algorithm ring --compression all
for compression in none bf16 fp16 int8 int4 2bit auto; do
  expect "$compression beside others" grep -q "\"asked_compression\": \"$compression\"" "$work/results.json"
done
bench 1
expect 'buffers that are rewritten' grep -q '"mode": "rewrite"' "$work/results.json"
bench 2 --warm
expect 'one buffer' grep -q '"mode": "warm"' "$work/results.json"
bench 2 --compare mpi --op max
expect 'MPI beside it' grep -q '"mpi_microseconds"' "$work/results.json"

refused '16-bit' bench_allreduce --dtype float16 --compare mpi
refused 'horse' bench_allreduce --algorithm horse
refused 'op' bench_allreduce --op median
refused "'nccl' is for ranks on GPUs" bench_allreduce --algorithm nccl
refused "'ring' is for ranks on CPUs" bench_allreduce --algorithm ring --device cuda
refused '--compare mpi is for the memory of CPUs' bench_allreduce --device cuda --compare mpi
# What cannot be here is left out.
mpi 2 env RONDA_SHARED_MEMORY_LIMIT=1048576 "$apps/bench_allreduce" --algorithm all --min-bytes 1K --max-bytes 1K --iterations 2 --rounds 2
expect_status 0
expect 'the ring' grep -q ' ring ' "$work/out"
expect 'no node' test "$(grep -c ' node ' "$work/out")" -eq 0

refused 'max-bytes' bench_allreduce --min-bytes 1M --max-bytes 1K

# bench_coordinator likewise.
for ranks in 1 2 3; do
  rm -f "$work/results.json"
  mpi $ranks "$apps/bench_coordinator" --tensors 1,30 --bytes 4K,64K --rounds 3 --warmup-seconds 0 --threads 2 --json "$work/results.json"
  expect_status 0
  expect 'all rows, none wrong' test "$(grep -c '"wrong": 0' "$work/results.json")" -eq 4
  expect 'the cost of a cycle' grep -q '"cycle_microseconds"' "$work/results.json"
done
refused 'bytes' bench_coordinator --bytes 2

# Before anything is measured.
for bench in bench_allreduce bench_coordinator; do
  refused_here 'cannot create /proc/nowhere/results.json' $bench --json /proc/nowhere/results.json
  expect 'no table' test "$(grep -c '^#' "$work/out")" -eq 0
done
