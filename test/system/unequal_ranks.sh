#!/usr/bin/env bash
# Ranks that were given different things: one message, no training, nobody waits for anybody.
source "$(dirname "$0")/lib.sh"

# unequal REGEX 'OPTIONS OF RANK 0' 'OPTIONS OF RANK 1': mpirun has a status of its own, which is the ranks' 2.
unequal() {
  local first second
  read -ra first <<<"$2"
  read -ra second <<<"$3"
  what="unequal ranks: ${2/$work/} : ${3/$work/}"
  run mpirun -n 1 "$apps/mnist_mlp" --steps 3 "${first[@]}" : -n 1 "$apps/mnist_mlp" --steps 3 "${second[@]}"
  expect_status 2
  expect_message "$1"
}

mkdir "$work/a" "$work/b"
ln -s "$mnist"/*.gz "$work/a"
ln -s "$mnist"/*.gz "$work/b"
rm "$work"/b/train-labels*
{ printf '\x00\x00\x08\x01\x00\x00\xea\x60\x00'; gzip -dc "$mnist/train-labels-idx1-ubyte.gz" | tail -c +10; } \
  >"$work/b/train-labels-idx1-ubyte" # one label is another

unequal 'seed' '--seed 1' '--seed 2'
unequal 'batch-size' '--batch-size 10' '--batch-size 20'
unequal 'hidden' '--hidden 100' '--hidden 101'
unequal 'hidden' '--hidden 100' '--hidden 100,100'
unequal 'steps|epochs' '' '--epochs 2'
unequal 'optimizer' '--optimizer adam' '--optimizer sgd'
unequal 'smoothing' '' '--label-smoothing 0.1'
unequal 'data' "--data $work/a" "--data $work/b"
unequal 'rank 1.*no-such-option' '' '--no-such-option'
unequal 'no-such-option' '--no-such-option' ''
unequal 'rank 1.*nowhere' '' "--data $work/nowhere"
unequal 'init' '' "--init $work/none"
unequal 'predictions' '' "--predictions $work/predictions"
unequal 'plan' '--threads 1' '--threads 2'

what='another application on rank 1'
run mpirun -n 1 "$apps/mnist_softmax" --steps 3 : -n 1 "$apps/mnist_mlp" --steps 3
expect_status 2
expect_message 'mnist_softmax|mnist_mlp'
