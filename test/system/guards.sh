#!/usr/bin/env bash
# Replicas that are no longer one model, and numbers that are not finite: noticed, blamed on the right rank, repaired.
source "$(dirname "$0")/lib.sh"
limit=60
few_images
training=(mnist_mlp --steps 40 --global-batch-size 120)

# ---- audits

audited() { # audited RANKS
  local ranks=$1 odd hash
  trained $ranks "${training[@]}" --plan "$work/plan"
  hash=$(summary parameter_hash)
  trained $ranks "${training[@]}" --plan "$work/plan" --audit-every 10
  expect_summary parameter_hash "$hash"
  expect_summary audits 5 # at the start, and four, the last at the end
  expect_summary divergences 0

  for odd in $((ranks == 2 ? 0 : 2)) 1; do
    mpi $ranks "$apps/${training[0]}" "${training[@]:1}" --quiet --audit-every 10 --inject flip@15:$odd
    expect_status 1
    expect_message "after step 20 \(audited after step 10\): rank $odd on [^ ]+ erred, first in dense1.weight"

    # To the bit what it would have been.
    trained $ranks "${training[@]}" --plan "$work/plan" --audit-every 10 --inject flip@15:$odd --on-divergence rollback
    expect_summary parameter_hash "$hash"
    expect_summary divergences 1
  done
}
# Also back to the end of one, of 9 steps; unbound, so that batches are assembled beforehand where cores are free.
audited_over_the_end_of_an_epoch() {
  local hash audits epochs=(mnist_mlp --epochs 2 --global-batch-size 700 --threads 1 --plan "$work/plan")
  export OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none
  unset RONDA_SHARED_CORES
  trained 2 "${epochs[@]}"
  hash=$(summary parameter_hash)
  for audits in 7 9; do
    trained 2 "${epochs[@]}" --audit-every $audits --inject flip@12:1 --on-divergence rollback
    expect_summary parameter_hash "$hash"
    expect_summary divergences 1
  done
}
# What is wrong before the reduction makes all replicas wrong alike.
not_seen_by_an_audit() {
  local hash both=(2 "${training[@]}" --plan "$work/plan" --audit-every 10)
  trained "${both[@]}"
  hash=$(summary parameter_hash)
  trained "${both[@]}" --inject flip-gradient@15:1
  expect_summary divergences 0
  [[ $(summary parameter_hash) != "$hash" ]] || fail 'the flipped bit to have changed something'
}
# Checkpoints say that they were audited, and the newest of these stays.
audited_checkpoints() {
  trained 2 "${training[@]}" --checkpoint-dir "$work/checkpoints" --audit-every 30 --checkpoint-every 10
  expect 'audited checkpoints' grep -q '"audited": true' "$work/checkpoints/step-40/manifest.json"
  expect 'no others' test -z "$(grep -L '"audited": true' "$work/checkpoints"/step-*/manifest.json)"
}
# Also what differs after the last of these steps.
audited_at_the_end() {
  local hash
  trained 2 "${training[@]}" --plan "$work/plan"
  hash=$(summary parameter_hash)
  trained 2 "${training[@]}" --plan "$work/plan" --audit-every 15 --inject flip@38:1 --on-divergence rollback
  expect_summary parameter_hash "$hash"
  expect_summary divergences 1
}
for ranks in 2 3 4; do aside audited $ranks; done
aside audited_at_the_end
aside not_seen_by_an_audit
aside audited_over_the_end_of_an_epoch
aside audited_checkpoints

# ---- numbers that are not finite

fails() { # fails REGEX OPTION…: on two ranks, with one message
  mpi 2 "$apps/${training[0]}" "${training[@]:1}" --quiet "${@:2}"
  expect_status 1
  expect_message "$1"
}
goes_on() { # goes_on RANKS KEY OPTION…: with a finite loss, and KEY is 1 in the summary
  trained "$1" "${training[@]}" "${@:3}"
  expect_summary "$2" 1
  expect_summary divergences 0
  expect 'a finite loss' at_least "$(summary test_loss)" 0.001
}
# A replica that errs after a rollback is repaired to the bits that the rollback led to.
repaired_after_rollback() {
  local hash both=(2 rollbacks --plan "$work/plan" --on-nonfinite rollback --inject nan@15:1 --audit-every 10 --checkpoint-every 10)
  goes_on "${both[@]}" --checkpoint-dir "$work/one"
  hash=$(summary parameter_hash)
  trained "${both[0]}" "${training[@]}" "${both[@]:2}" --checkpoint-dir "$work/two" --inject flip@18:1 --on-divergence rollback
  expect_summary divergences 1
  expect_summary parameter_hash "$hash"
}
# A node has a rank that owns no slice, and so nothing of what compression counts.
audited_in_unequal_nodes() {
  export RONDA_RANKS_PER_NODE=2
  trained 3 mnist_softmax --steps 4 --allreduce hierarchical --compression int8 --audit-every 2
  expect_summary audits 3
  expect_summary divergences 0
}
aside audited_in_unequal_nodes
aside repaired_after_rollback
for choice in '' '--on-nonfinite stop'; do
  aside fails 'step 15 is not finite: on rank 1 on [^ ]+ the loss and the gradient of dense2.bias' --inject nan@15:1 $choice
done
nothing_is_saved() {
  mpi 2 "$apps/${training[0]}" "${training[@]:1}" --quiet --inject nan@40:1 --save "$work/spoiled" --checkpoint-dir "$work/spoiled.d"
  expect_status 1
  expect 'no parameters' test ! -e "$work/spoiled"
  expect 'no checkpoint' test -z "$(ls "$work/spoiled.d")"
}
aside nothing_is_saved
aside fails 'is not finite: on rank 0 on [^ ]+ the loss' --learning-rate 1e30 # the loss is watched unasked
aside fails 'th step in a row' --on-nonfinite skip --learning-rate 1e30 --clip-norm 0
for ranks in 1 2 3; do aside goes_on $ranks nonfinite_steps --on-nonfinite skip --inject nan@15 --audit-every 10; done
aside goes_on 2 rollbacks --on-nonfinite rollback --inject nan@15:1 --checkpoint-dir "$work/back" --checkpoint-every 10
aside fails 'no checkpoint yet' --on-nonfinite rollback --inject nan@5:1 --checkpoint-dir "$work/none" --checkpoint-every 10

refused 'needs --checkpoint-dir' mnist_mlp --on-nonfinite rollback
refused 'stop, skip or rollback' mnist_mlp --on-nonfinite never
refused 'stop or rollback' mnist_mlp --on-divergence never
