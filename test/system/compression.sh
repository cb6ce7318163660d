#!/usr/bin/env bash
# --compression: models learn with it, replicas stay equal, equal runs are equal, and what cannot be is refused.
source "$(dirname "$0")/lib.sh"
limit=100
few_images

declare -A hashes
for compression in none bf16 fp16 int8 int4 2bit; do
  for turn in first second; do # replicas that differ would be an error; only the first turn times
    trained 2 mnist_mlp --steps 150 --plan "$work/$compression.json" --allreduce ring --compression $compression
    expect_summary compression $compression
    expect "a test accuracy of 0.85 with $compression" at_least "$(summary test_accuracy)" 0.85
    [[ $turn == first || $(summary parameter_hash) == "$hash" ]] || fail "$compression: two equal runs differ"
    hash=$(summary parameter_hash)
  done
  expect "$compression to change something" test -z "${hashes[$hash]:-}"
  hashes[$hash]=1
done
trained 3 mnist_softmax --steps 20 --allreduce halving --compression int8
trained 4 mnist_softmax --steps 20 --allreduce doubling --compression bf16

# ---- where it is left alone

says() { # says REGEX RANKS OPTION…: a line of the plan
  mpi "$2" "$apps/mnist_mlp" --steps 2 --verbose --summary-json "$work/summary.json" "${@:3}"
  expect_status 0
  expect "'$1' in the plan" grep -Eq -- "$1" "$work/err"
}
says 'bucket 0: .* by node, not compressed: nothing is sent' 2 --compression bf16
expect_summary compression none
says 'bucket 0: .* by ring, int8' 2 --compression int8 --allreduce ring
export RONDA_RANKS_PER_NODE=2
# What auto takes between "nodes" that share a memory is a matter of time; never one that keeps what it loses, which has to be asked for.
says 'bucket 1: .* by hierarchical(, bf16|, not compressed: it would not pay)?$' 4 --compression auto --allreduce hierarchical
says 'bucket 1: .* by hierarchical, int8' 4 --compression int8 --allreduce hierarchical
unset RONDA_RANKS_PER_NODE

# ---- files and limits

printf 'compression = "int8"\nallreduce = "ring"\n' >"$work/config.toml"
trained 2 mnist_softmax --steps 2 --config "$work/config.toml"
expect_summary compression int8
mpi 2 "$apps/mnist_mlp" --steps 1 --allreduce ring --compression int8 --verbose
expect 'its memory in the plan' grep -Eq 'a rank needs .*, exchange [0-9.]+ [KM]iB' "$work/err"
needs=$(sed -n 's/.*a rank needs \([0-9.]*\) MiB.*/\1/p' "$work/err")
mpi 2 "$apps/mnist_mlp" --steps 1 --allreduce ring --compression int8 --memory-limit "$(awk -v x="$needs" 'BEGIN { print int((x - 0.3) * 1024) "K" }')"
expect_status 2
expect_message 'exchange .* the limit is'

# ---- what cannot be

refused 'none, bf16, fp16, int8, int4, 2bit or auto' mnist_softmax --compression zip
refused "compression 'bf16'.*'mpi'" mnist_softmax --compression bf16 --allreduce mpi
refused 'compression int8 is for sums and means of float32, not for sum of float64' bench_allreduce --compression int8 --dtype float64 --max-bytes 8
refused 'compression fp16 is for sums and means of float32, not for max of float32' bench_allreduce --compression fp16 --op max --max-bytes 8
unequal compression 'mnist_softmax --steps 1 --compression bf16' 'mnist_softmax --steps 1'
