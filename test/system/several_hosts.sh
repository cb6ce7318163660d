#!/usr/bin/env bash
# Collectives and training over the network, between hosts that MPI takes for different machines (see hosts.sh).
# several_hosts.sh APPS COLLECTIVES: the folder of the tests of the collectives too.
source "$(dirname "$0")/lib.sh"
limit=240
here=$(cd "$(dirname "$0")" && pwd)
collectives=$(cd "${2:?usage: $0 APPS COLLECTIVES}" && pwd)

((EUID == 0)) || skip 'needs root'
for tool in unshare nsenter ip; do
  command -v $tool >/dev/null || skip "needs $tool"
done
run "$here/hosts.sh" 2 1 true
((status == 0)) || skip "no namespaces here: $(tail -1 "$work/err")"

on_hosts() { # on_hosts HOSTS RANKS COMMAND…: succeeds
  what="$1 hosts of $2 ranks: ${*:3}"
  run "$here/hosts.sh" "$@"
  expect_status 0
}

on_hosts 2 2 "$collectives/test_allreduce"
on_hosts 2 2 "$collectives/test_fusion_buffer"
on_hosts 4 1 "$collectives/test_allreduce"

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

# Options and data are compared over the network too.
what='a bad option on two hosts'
run "$here/hosts.sh" 2 1 "$apps/mnist_mlp" --optimizer adamant
expect_status 2
expect_message 'adamant'
