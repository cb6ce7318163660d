#!/usr/bin/env bash
# Collectives and training over the network, between hosts that MPI takes for different machines (see test/beds/netns.sh).
# several_hosts.sh APPS COLLECTIVES: the folder of the tests of the collectives too.
source "$(dirname "$0")/lib.sh"
limit=240
collectives=$(cd "${2:?usage: $0 APPS COLLECTIVES}" && pwd)

run "$beds/netns.sh" 2 1 true
((status != 77)) || skip "$(tail -1 "$work/err")"

options=() # of the bed
before=true # what happens on the head first
on_hosts() { # on_hosts HOSTS RANKS COMMAND…: by mpirun; succeeds
  what="$1 hosts${options[*]:+ ${options[*]}} of $2 ranks: ${*:3}"
  run "$beds/netns.sh" "${options[@]}" "$1" "$2" bash -c "$before"' && exec mpirun "$@"' - "${@:3}"
  expect_status 0
}

on_hosts 2 2 "$collectives/test_collectives" --filenames-as-tags '[#allreduce_test]'
on_hosts 2 2 "$collectives/test_collectives" --filenames-as-tags '[#fusion_buffer_test]'
on_hosts 4 1 "$collectives/test_collectives" --filenames-as-tags '[#allreduce_test]'

train() { # train HOSTS RANKS OPTION…: 20 steps, with the loss that one rank has, but for roundings
  rm -f "$work/summary.json"
  on_hosts "$1" "$2" "$apps/mnist_mlp" --quiet --steps 20 --summary-json "$work/summary.json" "${@:3}"
  expect_summary hosts "$1"
  expect_summary world_size $(($1 * $2))
  expect "a loss of $loss, not $(summary final_train_loss)" \
    awk -v a="$loss" -v b="$(summary final_train_loss)" 'BEGIN { exit !(b != "" && (a - b)^2 < 1e-6) }'
}
trained 1 mnist_mlp --steps 20
loss=$(summary final_train_loss)
for algorithm in auto ring hierarchical; do
  train 2 2 --allreduce $algorithm
  train 4 1 --allreduce $algorithm
done
train 2 2 --progress inline
train 2 2 --progress thread
before='bed lose ronda1 2 && bed lose ronda2 2' # of a hundred packets
train 2 1
before=true

# The same where the network is as slow as networks are, or slower.
bench() { # bench HOSTS RANKS OPTION…: 64 KiB and 1 MiB come out right
  on_hosts "$1" "$2" "$apps/bench_allreduce" --min-bytes 64K --max-bytes 1M --factor 16 --iterations 1 --rounds 1 --warmup 1 \
    --algorithm all --json "$work/bench.json" "${@:3}"
  expect 'no wrong results' test "$(grep -c '"wrong": 0' "$work/bench.json")" = "$(grep -c '"wrong"' "$work/bench.json")"
}
options=(--rate 1gbit)
bench 2 2
bench 4 1
bench 2 2 --compression bf16
bench 4 1 --compression int8
options=(--rate 1gbit --delay 500us)
run "$beds/netns.sh" "${options[@]}" 2 1 true
if ((status == 77)); then
  echo "without delays: $(tail -1 "$work/err")"
else
  bench 2 2
  bench 4 1
fi

# Options and data are compared over the network too.
what='a bad option on two hosts'
run "$beds/netns.sh" 2 1 mpirun "$apps/mnist_mlp" --optimizer adamant
expect_status 2
expect_message 'adamant'

# Ranks that go apart are found by what they tell one another across the network.
apart() { # apart HOW REGEX
  what="3 hosts, of which one goes apart: $1"
  run "$beds/netns.sh" 3 1 mpirun "$collectives/stall_program" "$1"
  ((status != 0)) || fail 'exit status 0'
  expect_message "$2"
}
apart skip:ring 'is bucket 1 by ring of step 2 \(.*\) on ranks 0 and 1, and bucket 2 by ring of step 2 \(.*\) on rank 2'
apart shape '\(allreduce of 4 float32, sum\) on ranks 0 and 1, .* \(allreduce of 5 float32, sum\) on rank 2'
apart planned-shape 'rank 0 on .* is at planning bucket 5 \(sum by auto, 4 float32\), rank 2 on .* \(sum by auto, 5 float32\)|rank 0 is at planning bucket 5'
