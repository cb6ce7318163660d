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
