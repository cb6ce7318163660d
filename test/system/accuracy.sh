#!/usr/bin/env bash
# The applications learn, with nothing but their defaults, what such models learn.
source "$(dirname "$0")/lib.sh"
limit=300

learns() { # learns ACCURACY APPLICATION OPTION…
  local accuracy=$1
  shift
  trained 2 "$@"
  echo "$*: test accuracy $(summary test_accuracy)"
  expect "a test accuracy of $accuracy" at_least "$(summary test_accuracy)" "$accuracy"
}

learns 0.920 mnist_softmax
learns 0.980 mnist_mlp
learns 0.980 mnist_cnn --epochs 1
learns 0.980 mnist_cnn --epochs 2 --prune 0.9

same_on_all_ranks() {
  local accuracies=() ranks accuracy
  for ranks in 1 2 3 4; do
    trained $ranks mnist_cnn --epochs 1 --global-batch-size 120
    accuracies+=("$(summary test_accuracy)")
  done
  echo "mnist_cnn after an epoch on 1, 2, 3 and 4 ranks: ${accuracies[*]}"
  for accuracy in "${accuracies[@]}"; do
    expect 'accuracies within 0.003' awk -v a="${accuracies[0]}" -v b="$accuracy" 'BEGIN { exit !(b != "" && (a - b)^2 <= 0.003^2) }'
  done
}
same_on_all_ranks
