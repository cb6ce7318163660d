#!/usr/bin/env bash
# What messages cost is measured once: kept in the user's cache and in a plan, used from there, and measured anew where a cache is
# damaged. Two ranks that take themselves for two nodes.
source "$(dirname "$0")/lib.sh"
limit=60
few_images
export RONDA_RANKS_PER_NODE=1 RONDA_CACHE_DIR=$work/cache
train() { mpi 2 "$apps/mnist_softmax" --steps 5 --batch-size 8 "$@"; }
costs() { grep -ao '"links": "links 2 [^"]*"' "$@"; }
spoil() { sed -i "s/\(\"links\"\): \"links 2 [^\"]*\"/\1: \"$1\"/" "$2"; } # spoil TEXT PLAN: it has other costs

train
expect_status 0
cache=$(echo "$RONDA_CACHE_DIR"/links-*.txt)
expect 'costs in the cache' grep -aq '^links 2 ' "$cache"

# Costs that no measurement would find: an exchange takes 5 s, and a ring more.
unlikely='links 2 lanes 16 streams 1 combine 0 pack 0,0,0 network-exchange 8=5 network-flow 8=7'
echo "$unlikely" >"$cache"
train --verbose
expect_status 0
expect 'the cached model' grep -aq 'by doubling took .* us in the mean, the model has 5000000 us' "$work/out" "$work/err"
expect 'the cache as it was' grep -aq "$unlikely" "$cache"

# bench_allreduce has the same cache, unless it is to measure anew.
bench() { mpi 2 "$apps/bench_allreduce" --algorithm auto --min-bytes 1K --max-bytes 1K --iterations 2 --rounds 2 "$@"; }
bench
expect_status 0
expect 'the cached model' grep -aq ' 5000000.00$' "$work/out"
expect 'the cache as it was' grep -aq "$unlikely" "$cache"
bench --calibrate
expect_status 0
expect 'another model' test "$(grep -ac ' 5000000.00$' "$work/out")" = 0
expect 'new costs' test "$(grep -ac "$unlikely" "$cache")" = 0

echo 'links 2 lanes 16 what' >"$cache"
train
expect_status 0
expect 'new costs' grep -aq '^links 2 .*network-exchange' "$cache"

train --plan "$work/plan.json"
expect_status 0
expect 'costs in the plan' costs "$work/plan.json"
train --plan "$work/plan.json"
expect_status 0
cp "$work/plan.json" "$work/spoilt.json"
spoil "$unlikely" "$work/plan.json"
train --plan "$work/plan.json" --verbose
if ((status == 0)); then # the same choice, or it would not be the same plan
  expect 'the plan model' grep -aq 'the model has 5000000 us' "$work/out" "$work/err"
else
  expect_message 'another plan'
fi
spoil 'links 2 lanes 16 what' "$work/spoilt.json"
train --plan "$work/spoilt.json"
expect_status 2
expect_message 'spoilt.json.*links'

# Costs without those of a node's shared memory are not for the next time, which may have the room.
export RONDA_CACHE_DIR=$work/little RONDA_RANKS_PER_NODE=2
little() { mpi 4 env RONDA_SHARED_MEMORY_LIMIT="$1" "$apps/bench_allreduce" --min-bytes 1M --max-bytes 1M --iterations 2 --rounds 2; }
little 1048576
expect_status 0
expect 'no costs' test ! -e "$(echo "$RONDA_CACHE_DIR"/links-*.txt)"
little 1073741824
expect_status 0
expect 'whole costs' grep -aq 'window' "$RONDA_CACHE_DIR"/links-*.txt

# One node needs no costs, and looks for none.
unset RONDA_RANKS_PER_NODE
export RONDA_CACHE_DIR=$work/other
train
expect_status 0
expect 'no costs' test ! -e "$(echo "$RONDA_CACHE_DIR"/links-*.txt)"
