#!/usr/bin/env bash
# The long form of resume.sh, by hand (some three minutes): MLP and CNN go on from a checkpoint of 2 ranks on 1, 2, 3 and 4. On 2 to the
# same bits; elsewhere the MLP to the same parameters within rounding, the CNN to the same accuracy within 0.3 points.
# resume_elsewhere.sh APPS PARAMETER_DISTANCE [mlp|cnn]
source "$(dirname "$0")/lib.sh"
parameter_distance=${2:?usage: $0 APPS PARAMETER_DISTANCE [mlp|cnn]} models=${3:-mlp cnn}
limit=300

near() { # near A B: accuracies within 0.3 points
  awk -v a="$1" -v b="$2" 'BEGIN { exit !(b != "" && (a - b)^2 <= 0.003^2) }'
}

for model in $models; do
  training=("mnist_$model" --epochs 1 --global-batch-size 120)
  trained 2 "${training[@]}" --save "$work/whole"
  accuracy=$(summary test_accuracy) hash=$(summary parameter_hash)
  run mpirun -n 2 "$apps/${training[0]}" "${training[@]:1}" --quiet --checkpoint-dir "$work/$model" --inject stop@250:1
  what='a checkpoint of 2 ranks'
  expect_status 75
  for ranks in 1 2 3 4; do
    rm -rf "$work/on"
    cp -r "$work/$model" "$work/on"
    trained $ranks "${training[@]}" --checkpoint-dir "$work/on" --resume --save "$work/resumed"
    expect_summary resumed_step 250
    expect_summary samples 60000
    distance=$("$parameter_distance" "$work/whole" "$work/resumed")
    echo "$model, from 2 ranks on $ranks: test accuracy $(summary test_accuracy), $accuracy without interruption; parameters differ by $distance"
    expect 'accuracies within 0.003' near "$accuracy" "$(summary test_accuracy)"
    ((ranks != 2)) || [[ $(summary parameter_hash) == "$hash" ]] || fail 'on 2 ranks: not the same bits'
    # 250 steps of sums in another order. A ReLU or a max-pool on its other side is beyond rounding; the CNN has many.
    [[ $model != mlp ]] || expect 'parameters within rounding' at_least 1e-4 "$distance"
  done
done
