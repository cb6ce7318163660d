#!/usr/bin/env bash
# The long form of resume.sh, by hand (some three minutes): the CNN goes on from a checkpoint of 2 ranks on 1, 2, 3 and 4, and comes to
# the same accuracy, within 0.3 points.   resume_cnn.sh APPS
source "$(dirname "$0")/lib.sh"
limit=300
cnn=(mnist_cnn --epochs 1 --global-batch-size 120)
trained 2 "${cnn[@]}"
accuracy=$(summary test_accuracy) hash=$(summary parameter_hash)
what='a checkpoint of 2 ranks'
run mpirun -n 2 "$apps/mnist_cnn" "${cnn[@]:1}" --quiet --checkpoint-dir "$work/checkpoints" --inject stop@250:1
expect_status 75
for ranks in 1 2 3 4; do
  cp -r "$work/checkpoints" "$work/c$ranks"
  trained $ranks "${cnn[@]}" --checkpoint-dir "$work/c$ranks" --resume
  expect_summary resumed_step 250
  expect_summary samples 60000
  echo "test accuracy $accuracy without interruption, $(summary test_accuracy) resumed on $ranks ranks"
  expect 'accuracies within 0.003' awk -v a="$accuracy" -v b="$(summary test_accuracy)" 'BEGIN { exit !(b != "" && (a - b)^2 <= 0.003^2) }'
  ((ranks != 2)) || [[ $(summary parameter_hash) == "$hash" ]] || fail 'on 2 ranks: not the same bits'
done
