#!/usr/bin/env bash
# Trainings by --strategy pipeline: those of one rank with as many micro-batches; ended and gone on with by other strategies and on other
# numbers of ranks; what is measured of the stages.
# pipeline.sh APPS PARAMETER_DISTANCE
source "$(dirname "$0")/lib.sh"
parameter_distance=${2:?usage: $0 APPS PARAMETER_DISTANCE}
limit=60

near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(b != "" && (a - b)^2 <= 0.003^2) }'; } # accuracies within 0.3 points
same_parameters() { # same_parameters FILE: within rounding, over a few hundred steps
  expect 'parameters within rounding' at_least 1e-3 "$("$parameter_distance" "$work/whole" "$1")"
}

# ---- the training of one rank

mlp=(mnist_mlp --hidden 96,64,48 --global-batch-size 240 --steps 200 --accumulate 4 --optimizer adam --clip-norm 1)
trained 1 "${mlp[@]}" --save "$work/whole"
accuracy=$(summary test_accuracy)
for stages in 2 3 4; do
  trained $stages "${mlp[@]}" --strategy pipeline --save "$work/parts"
  expect "accuracies within 0.003 ($stages stages)" near "$accuracy" "$(summary test_accuracy)"
  same_parameters "$work/parts"
  expect 'every stage in the summary' test "$(grep -c '"predicted_bubble"' "$work/summary.json")" -eq $stages
done
trained 4 "${mlp[@]}" --strategy pipeline --pipeline 2 --save "$work/parts"
same_parameters "$work/parts"
trained 3 "${mlp[@]}" --strategy pipeline --stages dense2,dense4 --save "$work/parts"
same_parameters "$work/parts"
expect 'the stages that were asked for' grep -q '"begins": "dense4"' "$work/summary.json"

# Convolutions chosen by timing may be others in a stage, and round in another way: few steps, so that this does not grow.
cnn=(mnist_cnn --global-batch-size 240 --steps 10 --accumulate 4 --optimizer momentum)
trained 1 "${cnn[@]}" --save "$work/whole_cnn"
trained 2 "${cnn[@]}" --strategy pipeline --stages dense1 --save "$work/parts"
expect 'parameters within rounding' at_least 1e-3 "$("$parameter_distance" "$work/whole_cnn" "$work/parts")"

# ---- ended, and gone on with elsewhere

saving=(--checkpoint-every 50 --checkpoint-dir)
mpi 2 "$apps/${mlp[0]}" "${mlp[@]:1}" --quiet --strategy pipeline "${saving[@]}" "$work/killed" --inject slow@101:0 --inject kill@130:1 # when that of step 100 is on disk
expect 'an end' test "$status" -ne 0
mpi 2 "$apps/${mlp[0]}" "${mlp[@]:1}" --quiet --strategy pipeline "${saving[@]}" "$work/stopped" --inject stop@150:0
expect_status 75
go_on() { # go_on FOLDER STEP RANKS OPTION…
  rm -rf "$work/on"
  cp -r "$work/$1" "$work/on"
  trained "$3" "${mlp[@]}" --checkpoint-dir "$work/on" --resume --save "$work/resumed" "${@:4}"
  expect_summary resumed_step "$2"
  same_parameters "$work/resumed"
}
for folder in 'killed 100' 'stopped 150'; do
  # shellcheck disable=SC2086 # two words
  {
    go_on $folder 1
    go_on $folder 2 --strategy sharded
    go_on $folder 2 --strategy pipeline
    go_on $folder 3 --strategy pipeline --stages dense3,dense4
    go_on $folder 4 --strategy pipeline --pipeline 2
  }
done
mpi 2 "$apps/${mlp[0]}" "${mlp[@]:1}" --quiet "${saving[@]}" "$work/mirrored" --inject stop@150:0
expect_status 75
go_on mirrored 150 3 --strategy pipeline

# ---- what cannot be

what='a name that is none'
refused "1 rank cannot be|'dense9'.*no such operation.*it may with dense2, dense3 or dense4" mnist_mlp --hidden 9,9,9 --strategy pipeline --stages dense9
run mpirun -n 3 "$apps/mnist_mlp" --strategy pipeline --pipeline 2
expect_status 2
expect_message '3 ranks cannot be pipelines of 2 stages .--pipeline.: give a multiple of 2 ranks'
run mpirun -n 4 "$apps/mnist_softmax" --strategy pipeline
expect_status 2
expect_message 'can be cut into 1 stage with parameters at most, not into 4'
wait
