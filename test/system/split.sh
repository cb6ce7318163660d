#!/usr/bin/env bash
# Trainings by --strategy split: those of one rank; ended and gone on with by other strategies and on other numbers of ranks.
# split.sh APPS PARAMETER_DISTANCE
source "$(dirname "$0")/lib.sh"
parameter_distance=${2:?usage: $0 APPS PARAMETER_DISTANCE}
limit=60
few_images

near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(b != "" && (a - b)^2 <= 0.003^2) }'; } # accuracies within 0.3 points
same_parameters() { # same_parameters FILE [WHOLE]: within rounding, over some steps
  expect 'parameters within rounding' at_least 1e-3 "$("$parameter_distance" "$work/${2:-whole}" "$1")"
}

mlp=(mnist_mlp --hidden 96,64 --global-batch-size 240 --steps 60 --optimizer adam --clip-norm 1)
trained 1 "${mlp[@]}" --save "$work/whole"
accuracy=$(summary test_accuracy)
for ranks in 2 3; do
  trained $ranks "${mlp[@]}" --strategy split --save "$work/parts"
  expect "accuracies within 0.003 ($ranks ranks)" near "$accuracy" "$(summary test_accuracy)"
  same_parameters "$work/parts"
  expect 'what is split in the summary' grep -q '"dense1=columns"' "$work/summary.json"
done
trained 4 "${mlp[@]}" --strategy split --split 2 --split-layers dense1=columns,dense3=rows --accumulate 2 --save "$work/parts"
same_parameters "$work/parts"
expect 'two parts' grep -q '"parts": 2' "$work/summary.json"

# Other sums may let another pixel win a pooling: one step, so that this does not grow.
cnn=(mnist_cnn --global-batch-size 120 --steps 1)
trained 1 "${cnn[@]}" --save "$work/whole_cnn"
trained 2 "${cnn[@]}" --strategy split --split-layers conv2=columns,conv3=rows,dense1=columns,dense2=rows --save "$work/parts"
same_parameters "$work/parts" whole_cnn

# ---- ended, and gone on with elsewhere

saving=(--checkpoint-every 20 --checkpoint-dir)
mpi 2 "$apps/${mlp[0]}" "${mlp[@]:1}" --quiet --strategy split "${saving[@]}" "$work/killed" --inject slow@1:0 --inject kill@59:1 # when one is on disk
expect 'an end' test "$status" -ne 0
go_on() { # go_on FOLDER STEP RANKS OPTION…: from that step, or from a later one
  rm -rf "$work/on"
  cp -r "$work/$1" "$work/on"
  trained "$3" "${mlp[@]}" --checkpoint-dir "$work/on" --resume --save "$work/resumed" "${@:4}"
  expect "to go on from step $2" test "$(summary resumed_step)" -ge "$2"
  same_parameters "$work/resumed"
}
go_on killed 20 1
go_on killed 20 2 --strategy sharded
go_on killed 20 3 --strategy split --split-layers dense1=rows,dense2=columns
mpi 2 "$apps/${mlp[0]}" "${mlp[@]:1}" --quiet "${saving[@]}" "$work/mirrored" --inject stop@45:0
expect_status 75
go_on mirrored 45 2 --strategy split

# ---- what cannot be

mpi 2 "$apps/mnist_mlp" --strategy split --split-layers dense9=columns
expect_status 2
expect_message "'dense9' cannot be split over ranks: the model has no such operation; dense1 or dense2 can"
mpi 3 "$apps/mnist_mlp" --strategy split --split 2
expect_status 2
expect_message '3 ranks cannot be groups of 2 that split a model .--split.: give a multiple of 2 ranks'
