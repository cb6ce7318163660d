#!/usr/bin/env bash
# Allreduce on simulated hosts (see test/beds/simgrid): right by every algorithm, and the ring as fast as can be.
# simulated_hosts.sh APPS BUILD: the folder where the simulated program is built.
source "$(dirname "$0")/lib.sh"
limit=500
build=${2:?usage: $0 APPS BUILD}

simulate() { # simulate OPTION…: leaves a table in $work/out
  what="simulated: $*"
  run "$beds/simgrid/simulate.sh" --build "$build" "$@"
  ((status != 77)) || skip "$(tail -1 "$work/err")"
  expect_status 0
}

# Ronda's allreduces by messages: simulated hosts share no memory.
ours=$(basename -s .cpp "$beds"/../../collectives/host/algorithms/allreduce/*.cpp | grep -vxE 'node|hierarchical|mpi' | paste -sd,)
count=$(tr , '\n' <<<"$ours,mpi" | wc -l)
simulate --hosts 8,13 --bytes 400000 --check --algorithms "$ours,mpi"
expect 'two rows for each' test "$(grep -c '^| [0-9]' "$work/out")" = $((2 * count))
simulate --hosts 32 --bytes 16384,65536,4000000 --algorithms "$ours,auto"
expect 'choices within a tenth of the best' \
  awk -F'|' '/auto/ { ++seen; if ($7 > 1.1) bad = 1 } END { exit bad || seen != 3 }' "$work/out"
simulate --hosts 8 --bytes 100000000
expect 'a ring of 1 to 1.15 times the least time' \
  awk -F'|' '/ring/ { if ($6 >= 0.99 && $6 <= 1.15) good = 1 } END { exit !good }' "$work/out"
