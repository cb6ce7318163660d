#!/usr/bin/env bash
# Ranks that were given different things: one message, no training, nobody waits for anybody.
source "$(dirname "$0")/lib.sh"

# other_options REGEX 'OPTIONS OF RANK 0' 'OPTIONS OF RANK 1'
other_options() { unequal "$1" "mnist_mlp --steps 3 $2" "mnist_mlp --steps 3 $3"; }

mkdir "$work/a" "$work/b"
ln -s "$mnist"/*.gz "$work/a"
ln -s "$mnist"/*.gz "$work/b"
rm "$work"/b/train-labels*
{ printf '\x00\x00\x08\x01\x00\x00\xea\x60\x00'; gzip -dc "$mnist/train-labels-idx1-ubyte.gz" | tail -c +10; } \
  >"$work/b/train-labels-idx1-ubyte" # one label is another

options='the options of rank 0 on [^ ]+ and rank 1 on [^ ]+ differ:'
other_options "$options 'seed 1' and 'seed 2'" '--seed 1' '--seed 2'
other_options "$options 'batch-size 10' and 'batch-size 20'" '--batch-size 10' '--batch-size 20'
other_options "$options .*hidden 100.* and .*hidden 101" '--hidden 100' '--hidden 101'
other_options "$options .*hidden 100' and .*hidden 100, hidden 100'" '--hidden 100' '--hidden 100,100'
other_options "$options '(steps|epochs) .*' and '(steps|epochs) " '' '--epochs 2'
other_options "$options 'optimizer adam' and 'optimizer sgd'" '--optimizer adam' '--optimizer sgd'
other_options "$options .*smoothing 0.* and .*smoothing 0.1" '' '--label-smoothing 0.1'
other_options "the training data of rank 0 on [^ ]+ and rank 1 on [^ ]+ differ:" "--data $work/a" "--data $work/b"
other_options 'rank 1.*no-such-option' '' '--no-such-option'
other_options '--no-such-option' '--no-such-option' ''
other_options 'rank 1.*nowhere' '' "--data $work/nowhere"
other_options "$options 'init not given' and 'init given'" '' "--init $work/none"
other_options "$options 'predictions not given' and 'predictions given'" '' "--predictions $work/predictions"
unequal "$options 'model mnist_softmax,.*' and 'model mnist_mlp," 'mnist_softmax --steps 3' 'mnist_mlp --steps 3'
