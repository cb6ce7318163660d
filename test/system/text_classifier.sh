#!/usr/bin/env bash
# The classifier of texts: what it reaches, what it sends, that replicas and resumed trainings agree, and what it refuses.
source "$(dirname "$0")/lib.sh"
limit=60

options=(--optimizer adam --learning-rate 0.005 --schedule constant --global-batch-size 128 --threads 1 --quiet)
for ranks in 1 3; do
  mpi $ranks "$apps/text_classifier" --threads 1 --quiet --summary-json "$work/summary.json" # with its defaults
  expect_status 0
  accuracy=$(summary test_accuracy) sent=$(summary bytes_per_step)
  echo "$ranks ranks: $accuracy of the test data, $sent bytes a step"
  expect 'a good fit' at_least "$accuracy" 0.77
  expect 'less than a tenth of the table sent' at_least $((65536 * 64 * 4 / 10)) "$sent"
done

# A training that goes on from a checkpoint is the training that did not end, to the bit; with a frozen table too.
for more in "" "--freeze embedding_bag1"; do
  rm -rf "$work/run"
  # shellcheck disable=SC2086
  mpi 2 "$apps/text_classifier" "${options[@]}" $more --steps 20 --audit-every 5 --checkpoint-dir "$work/run" \
    --checkpoint-every 10 --summary-json "$work/summary.json"
  expect_status 0
  whole=$(summary parameter_hash)
  # shellcheck disable=SC2086
  mpi 2 "$apps/text_classifier" "${options[@]}" $more --steps 20 --resume-from "$work/run/step-10" \
    --summary-json "$work/summary.json"
  expect_status 0
  expect 'the second half alone' test "$(summary resumed_step)" -eq 10
  expect 'the same parameters' test "$(summary parameter_hash)" = "$whole"
done

# Plain SGD changes no row without a gradient: whole gradients do the same, but for rounding, and send everything.
mpi 2 "$apps/text_classifier" --optimizer sgd --learning-rate 0.5 --schedule constant --global-batch-size 128 --steps 30 --threads 1 --quiet \
  --summary-json "$work/summary.json"
expect_status 0
loss=$(summary final_train_loss)
# Two workers push the touched rows to a server.
mpi 3 "$apps/text_classifier" --optimizer sgd --learning-rate 0.5 --schedule constant --global-batch-size 128 --steps 30 --threads 1 --quiet \
  --strategy parameter_server --summary-json "$work/summary.json"
expect_status 0
expect 'the loss of mirrored replicas' awk "BEGIN { d = $loss - $(summary final_train_loss); exit !(d * d < 1e-10) }"
expect 'less than a tenth of the table pushed' at_least $((30 * 65536 * 64 * 4 / 10)) "$(summary pushed_bytes)"
mpi 2 "$apps/text_classifier" --optimizer sgd --learning-rate 0.5 --schedule constant --global-batch-size 128 --steps 30 --threads 1 --quiet \
  --whole-gradients --summary-json "$work/summary.json"
expect_status 0
expect 'the same loss' awk "BEGIN { d = $loss - $(summary final_train_loss); exit !(d * d < 1e-8) }"
expect 'the whole table sent' at_least "$(summary bytes_per_step)" $((65536 * 64 * 4))

refused() { # refused MESSAGE OPTION…
  local message=$1
  shift
  mpi 2 "$apps/text_classifier" "$@"
  expect_status 2
  expect_message "$message"
}
refused 'lars.*embedding_bag1.weight is sparse' --optimizer lars --steps 1
refused 'nowhere/train.tsv.gz' --data "$work/nowhere"
mkdir "$work/own" && cp "${mnist%/mnist}"/reviews/*.gz "$work/own"
refused '--metrics .*train.tsv.gz would overwrite an input' --data "$work/own" --metrics "$work/own/train.tsv.gz"
mkdir "$work/labels" && printf 'label\ttext\n0\tfine\n1048576\tfar\n' | tee "$work/labels/test.tsv" | gzip >"$work/labels/train.tsv.gz"
gzip "$work/labels/test.tsv"
refused 'labels/train.tsv.gz: a label of 1048576; labels count the classes from 0 on' --data "$work/labels"

# Gaps in the labels are classes without a sample.
mkdir "$work/gaps" && printf 'label\ttext\n0\tfine\n1000\tfair\n2000\tfar\n' | gzip | tee "$work/gaps/test.tsv.gz" >"$work/gaps/train.tsv.gz"
mpi 2 "$apps/text_classifier" --data "$work/gaps" --steps 1 --threads 1 --quiet
expect_status 0
expect 'one warning' test "$(grep -c 'warning: 1998 of the 2001 classes have no sample to train with, 1 the first' "$work/err")" -eq 1
