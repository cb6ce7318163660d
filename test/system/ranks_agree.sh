#!/usr/bin/env bash
# One rank and several, on MNIST with the same global batch, end with the same model but for roundings.
# ranks_agree.sh APPS PARAMETER_DISTANCE
source "$(dirname "$0")/lib.sh"
limit=120
parameter_distance=${2:?usage: $0 APPS PARAMETER_DISTANCE}

# agree APPLICATION OPTION…: parameters of 2, 3 and 4 ranks within $tolerance of one rank's, as a part of their norm.
# Two orders of summation differ by 1e-7, and stay so until they put a ReLU's input, or a near tie in a max-pool, on
# different sides: that one sample's gradient is another then, which moves the parameters by up to 1e-3 at once, and grows.
# It happens once in some thousand steps of the MLP, once in some fifteen of the CNN, whoever computes; so runs are short,
# and a number of ranks gets four seeds to agree for once.
tolerance=1e-4
agree() {
  local -x RONDA_CACHE_DIR=${RONDA_CACHE_DIR:-$work/cache}
  local ranks
  for ranks in 2 3 4; do
    what="1 and $ranks ranks: $*"
    agree_for_a_seed $ranks "$@" || fail "no seed within $tolerance"
  done
}
agree_for_a_seed() { # agree_for_a_seed RANKS APPLICATION OPTION…
  local ranks=$1 seed distance one
  shift
  for seed in 1 2 3 4; do
    # What was chosen by timing may be another algorithm for other numbers of ranks, with roundings of its own (Winograd's
    # convolution): it is timed anew for each seed.
    ((seed == 1)) || rm -rf "$RONDA_CACHE_DIR"
    mkdir -p "$RONDA_CACHE_DIR"
    one=$work/one.$seed.${*//[^a-z0-9]/_}
    [[ -e $one ]] || trained 1 "$@" --seed $seed --save "$one"
    trained "$ranks" "$@" --seed $seed --save "$work/several"
    distance=$("$parameter_distance" "$one" "$work/several") || return
    echo "$*: 1 and $ranks ranks differ by $distance"
    at_least "$tolerance" "$distance" && return
  done
  return 1
}

# A batch that divides by all of them, one that does not, and a last one of 3 samples, which leaves the fourth rank none.
unset RONDA_CACHE_DIR # each comparison has its own
for batch in 120 100; do aside agree mnist_mlp --steps 100 --global-batch-size $batch; done
for application in mnist_softmax mnist_mlp; do aside agree $application --epochs 1 --global-batch-size 2857; done
aside agree mnist_cnn --steps 5 --global-batch-size 100

# In bfloat16 numbers are rounded to 2^-9 of themselves, gradients of each rank among them: 30 steps end 0.01 apart, as from
# float32, with instructions for it and without.
in_bfloat16() {
  local tolerance=2e-2
  agree mnist_mlp --steps 30 --dtype mixed_bfloat16 --emulate-dtype
  agree mnist_cnn --steps 5 --dtype mixed_bfloat16 --emulate-dtype --reduce-dtype float32
  local -x ONEDNN_MAX_CPU_ISA=AVX2 RONDA_CACHE_DIR=$work/emulated
  trained 1 mnist_mlp --steps 30 --dtype mixed_bfloat16 --emulate-dtype --save "$work/emulated.safetensors"
  trained 1 mnist_mlp --steps 30 --save "$work/exact.safetensors"
  what='bfloat16 without instructions for it'
  expect 'parameters near float32' at_least 2e-2 "$("$parameter_distance" "$work/exact.safetensors" "$work/emulated.safetensors")"
}
aside in_bfloat16

# The residual network's biases are 0 at first, so a black margin gives ReLUs an input of exactly 0. Every implementation
# computes exactly 0 there, so results of different numbers of ranks differ only by roundings, 6e-8.
zeros_stay_zeros() {
  local tolerance=1e-6
  agree mnist_resnet --steps 1 --global-batch-size 100
}
aside zeros_stay_zeros
