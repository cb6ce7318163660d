#!/usr/bin/env bash
# What a run says, writes and returns; that equal runs are equal, and that a saved model goes on where it was.
source "$(dirname "$0")/lib.sh"
limit=60

# ---- what it says

mpi 1 "$apps/mnist_mlp" --help
expect_status 0
for text in 'Data and length:' 'Learning:' 'Where and how:' 'Files:' 'Output:' '--seed UINT( \[1\]|=1)' 'nesterov\]?' '--hidden'; do
  expect "'$text' in the help" grep -Eq -- "$text" "$work/out" # defaults stand in brackets with CLI11 2.4, behind = with 2.3
done
expect 'no option of one strategy in the help' test "$(grep -c -- --fragments "$work/out")" -eq 0
expect 'few options in the help' test "$(grep -c '^  *--' "$work/out")" -le 40
mpi 1 "$apps/mnist_mlp" --help-all
expect_status 0
for text in 'Strategy local_sgd:' '--fragments' '--prune-begin' '--communication-timeout' '--hidden'; do
  expect "'$text' among all options" grep -Eq -- "$text" "$work/out"
done
mpi 2 "$apps/mnist_mlp" --help
expect_status 0
expect 'the help once' test "$(grep -c '^Usage' "$work/out")" -eq 1
mpi 1 "$apps/mnist_mlp" --version
expect_status 0
expect 'a version' grep -Eq '^mnist_mlp \(Ronda\) [0-9]+\.[0-9]+\.[0-9]+' "$work/out"

for ranks in 1 2; do
  mpi $ranks "$apps/mnist_softmax" --steps 7 --quiet
  expect_status 0
  expect 'silence' test ! -s "$work/out" -a ! -s "$work/err"
  mpi $ranks "$apps/mnist_softmax" --steps 7
  expect_status 0
  expect 'one table' test "$(grep -c '^epoch' "$work/out")" -eq 1
  expect 'the accuracy' grep -Eq '^test accuracy [0-9.]+ %' "$work/out"
done

mpi 2 "$apps/mnist_softmax" --steps 1 --verbose
expect_status 0
expect 'the cores of both ranks' grep -Eq '^ronda: cores by rank: [0-9,-]+ \| [0-9,-]+ on .*; threads of each: [0-9]+, progress inline$' "$work/err"
if (($(nproc) > 1)); then
  core=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
  mpi 2 taskset -c "$core" "$apps/mnist_softmax" --steps 1
  expect_status 0
  expect 'one warning' test "$(grep -c "^ronda: warning: rank 0 on .* share cores ($core)" "$work/err")" -eq 1
fi

# ---- what it writes

trained 2 mnist_softmax --epochs 2 --global-batch-size 7000 --metrics "$work/metrics"
for key in application version world_size hosts device dtype global_batch_size epochs steps samples parameters \
  gradient_bytes train_seconds samples_per_second step_microseconds median p99 final_train_loss test_loss test_accuracy parameter_hash \
  allreduce algorithm bytes_per_step buckets exposed_seconds startup_seconds plan_hash epoch_history epoch train_loss \
  train_accuracy seconds; do
  expect "the key $key in the summary" grep -q "^ *\"$key\": " "$work/summary.json"
done
expect_summary application mnist_softmax
expect_summary world_size 2
expect_summary hosts 1
expect_summary device cpu
expect_summary dtype float32
expect_summary global_batch_size 7000
expect_summary epochs 2
expect_summary steps 18 # the ninth of an epoch has the 4000 that are left
expect_summary samples 120000
expect_summary parameters 7850
expect 'a time' at_least "$(summary train_seconds)" 0.001
expect 'a speed' at_least "$(summary samples_per_second)" 1
expect 'p99 to be the median or more' at_least "$(summary p99)" "$(summary median)"
expect 'all gradients on the wire' at_least "$(summary bytes_per_step)" $((4 * 7850))
expect 'two epochs' test "$(grep -c '"epoch": ' "$work/summary.json")" -eq 2

number='-?[0-9.]+(e[-+]?[0-9]+)?'
line="^\{\"step\": [0-9]+, \"epoch\": [12], \"loss\": $number, \"train_accuracy\": $number, \"learning_rate\": $number, \"samples\": [0-9]+, \"seconds\": $number"
expect '18 lines of metrics' test "$(grep -Ec "$line[,}]" "$work/metrics")" -eq 18
results=", \"epoch_loss\": $number, \"epoch_accuracy\": $number, \"epoch_seconds\": $number, \"test_loss\": $number, \"test_accuracy\": $number\}$"
expect 'the results of two epochs' test "$(grep -Ec "$line$results" "$work/metrics")" -eq 2
expect 'an epoch a last line' test "$(grep -Ec '^\{"step": (9|18), .*"test_loss"' "$work/metrics")" -eq 2
expect 'no other lines' test "$(wc -l <"$work/metrics")" -eq 18
expect 'every sample in the metrics' test "$(sed 's/.*"samples": \([0-9]*\).*/\1/' "$work/metrics" | paste -sd+ | tr -d ' ' | { read -r sum; echo $((sum)); })" -eq 120000
expect 'steps from 1 on' test "$(sed 's/{"step": \([0-9]*\).*/\1/' "$work/metrics" | tr '\n' ' ')" = "$(echo {1..18}) "

few_images
trained 1 mnist_mlp --steps 7
expect_summary parameters 101770
expect_summary steps 7
expect_summary samples 896
expect_summary epochs 1
trained 1 mnist_mlp --steps 7 --hidden 32,16
expect_summary parameters $((784 * 32 + 32 + 32 * 16 + 16 + 160 + 10))
trained 2 mnist_cnn --steps 2
expect_summary parameters 93322

# ---- readers that end: as with a full disk, training goes on

what='a reader of the table that ends'
run bash -c 'env --default-signal=PIPE "$@" | true; exit "${PIPESTATUS[0]}"' - "$apps/mnist_mlp" --data "$few" --epochs 2 --save "$work/piped"
expect_status 0
expect 'the model' test -s "$work/piped"
expect 'no words of it' test "$(grep -cE 'error|warning' "$work/err")" -eq 0
mkfifo "$work/reader"
for ranks in 1 2; do
  : <"$work/reader" &
  trained $ranks mnist_mlp --epochs 2 --metrics "$work/reader" --save "$work/model$ranks"
  expect 'one warning' test "$(grep -c "^ronda: warning: cannot write $work/reader: Broken pipe; training goes on" "$work/err")" -eq 1
  expect 'the model' test -s "$work/model$ranks"
done
for option in --metrics --summary-json --save --predictions; do
  what="$option /dev/stdout, appended to a file"
  echo precious >"$work/log"
  run bash -c '"$@" >>"$0"' "$work/log" "$apps/mnist_mlp" --data "$few" --steps 2 "$option" /dev/stdout
  expect_status 2
  expect_message "will not write to /dev/stdout: it is the open file $work/log"
  expect 'the file as it was' test "$(cat "$work/log")" = precious
done

# ---- equal runs

same_hash() { # same_hash TEXT: this run's parameters are the last one's
  [[ $(summary parameter_hash) == "$hash" && -n $hash ]] || fail "$1: parameters $(summary parameter_hash), expected $hash"
}
for ranks in 1 2 3; do # three ranks of 100: unequal parts
  trained $ranks mnist_mlp --steps 1 --global-batch-size 100 --plan "$work/plan$ranks.json" # no timing in what follows
  trained $ranks mnist_mlp --steps 40 --global-batch-size 100 --plan "$work/plan$ranks.json"
  expect_summary samples 4000
  hash=$(summary parameter_hash)
  trained $ranks mnist_mlp --steps 40 --global-batch-size 100 --plan "$work/plan$ranks.json"
  same_hash 'run again'
done
trained 1 mnist_softmax --steps 20
hash=$(summary parameter_hash)
trained 1 mnist_softmax --steps 20 --allreduce ring
same_hash 'alone, by ring'
trained 1 mnist_softmax --steps 20 --seed 2
[[ $(summary parameter_hash) != "$hash" ]] || fail 'another seed, but the same parameters'

# ---- a saved model goes on where it was

trained 2 mnist_mlp --steps 30 --save "$work/model"
loss=$(summary test_loss) hash=$(summary parameter_hash)
trained 1 mnist_mlp --steps 1 --init "$work/model" --optimizer sgd --schedule constant --learning-rate 1e-30
same_hash 'after --save and --init'
expect "a test loss of $loss" at_least "$(awk -v a="$loss" -v b="$(summary test_loss)" 'BEGIN { print 1e-4 - (a > b ? a - b : b - a) }')" 0
expect 'a file of safetensors for PyTorch' grep -aq '"format":"pt"' "$work/model"
expect 'no parts left behind' test -z "$(find "$work" -name '*.part.*')"

# ---- places and numbers of ranks

cd /
trained 4 mnist_softmax --steps 20
expect_summary world_size 4
