#!/usr/bin/env bash
# Replicas that are no longer one model, and numbers that are not finite: noticed, blamed on the right rank, repaired.
source "$(dirname "$0")/lib.sh"
limit=30
training=(mnist_mlp --steps 40 --global-batch-size 120)

# ---- audits

for ranks in 2 3 4; do
  trained $ranks "${training[@]}" --plan "$work/plan$ranks"
  hash=$(summary parameter_hash)
  trained $ranks "${training[@]}" --plan "$work/plan$ranks" --audit-every 10
  expect_summary parameter_hash "$hash"
  expect_summary audits 5 # at the start, and four
  expect_summary divergences 0

  for odd in $((ranks == 2 ? 0 : 2)) 1; do
    mpi $ranks "$apps/${training[0]}" "${training[@]:1}" --quiet --audit-every 10 --inject flip@15:$odd
    expect_status 1
    expect_message "after step 20 \(audited after step 10\): rank $odd on [^ ]+ erred, first in dense1.weight"

    # To the bit what it would have been.
    trained $ranks "${training[@]}" --plan "$work/plan$ranks" --audit-every 10 --inject flip@15:$odd --on-divergence rollback
    expect_summary parameter_hash "$hash"
    expect_summary divergences 1
  done
done
# Over the end of an epoch.
trained 2 mnist_mlp --epochs 2 --global-batch-size 6000 --plan "$work/plan_epochs"
hash=$(summary parameter_hash)
trained 2 mnist_mlp --epochs 2 --global-batch-size 6000 --plan "$work/plan_epochs" --audit-every 7 --inject flip@9:1 --on-divergence rollback
expect_summary parameter_hash "$hash"
expect_summary divergences 1

# Checkpoints say that they were audited, and the newest of these stays.
checkpoints=$work/checkpoints
trained 2 "${training[@]}" --checkpoint-dir "$checkpoints" --audit-every 30 --checkpoint-every 10
expect 'audited checkpoints' grep -q '"audited": true' "$checkpoints/step-40/manifest.json"
expect 'no others' test -z "$(grep -L '"audited": true' "$checkpoints"/step-*/manifest.json)"

# ---- numbers that are not finite

mpi 2 "$apps/${training[0]}" "${training[@]:1}" --quiet --inject nan@15:1 --on-nonfinite stop
expect_status 1
expect_message 'step 15 is not finite: on rank 1 on [^ ]+ the gradient of dense1.weight' # ReLU keeps it from the loss
mpi 2 "$apps/${training[0]}" "${training[@]:1}" --quiet --learning-rate 1e30 # the loss is watched unasked
expect_status 1
expect_message 'is not finite: on rank 0 on [^ ]+ the loss'
for ranks in 1 2 3; do
  trained $ranks "${training[@]}" --on-nonfinite skip --inject nan@15 --audit-every 10
  expect_summary nonfinite_steps 1
  expect_summary divergences 0
  expect 'a finite loss' at_least "$(summary test_loss)" 0.001
done
trained 2 "${training[@]}" --on-nonfinite rollback --inject nan@15:1 --checkpoint-dir "$work/back" --checkpoint-every 10
expect_summary rollbacks 1
expect 'a finite loss' at_least "$(summary test_loss)" 0.001
mpi 2 "$apps/${training[0]}" "${training[@]:1}" --quiet --on-nonfinite rollback --inject nan@5:1 --checkpoint-dir "$work/none" --checkpoint-every 10
expect_status 1
expect_message 'no checkpoint yet'
mpi 2 "$apps/${training[0]}" "${training[@]:1}" --quiet --on-nonfinite skip --learning-rate 1e30 --clip-norm 0
expect_status 1
expect_message 'th step in a row'

refused 'needs --checkpoint-dir' mnist_mlp --on-nonfinite rollback
refused 'stop, skip or rollback' mnist_mlp --on-nonfinite never
refused 'stop or rollback' mnist_mlp --on-divergence never
