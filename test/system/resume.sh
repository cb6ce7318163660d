#!/usr/bin/env bash
# A training that is interrupted and resumed is the training that was not: its bits, its metrics, its samples.
# resume.sh APPS COUNTED_TRAINING PARAMETER_DISTANCE
source "$(dirname "$0")/lib.sh"
counted=${2:?usage: $0 APPS COUNTED_TRAINING PARAMETER_DISTANCE} parameter_distance=${3:?}
limit=60
source "$(dirname "$0")/counting.sh"

toy=(--global-batch-size 100 --epochs 4) # 997 samples: 10 steps an epoch, the last of 97
saving=(--checkpoint-every 5 --checkpoint-dir) # and where

expect_hash() { [[ $(summary parameter_hash) == "$hash" && -n $hash ]] || fail "$1: parameters $(summary parameter_hash), expected $hash"; }
steps_in() { find "$1" -maxdepth 1 -name 'step-*[0-9]' | sed 's/.*-//' | sort -n; }
same_metrics() { cmp <(sed 's/, "[a-z_]*seconds": [^,}]*//g' "$work/whole") <(sed 's/, "[a-z_]*seconds": [^,}]*//g' "$work/metrics"); }
epochs_of() { sed -n '/"epoch_history"/,$p' "$work/summary.json" | grep -v seconds; } # what a table would show, without times

# ---- the same bits on as many ranks, whatever a step consists of

same_bits() { # same_bits RANKS OPTION…
  local ranks=$1 again history
  shift
  count "$ranks" "${toy[@]}" "$@" --plan "$work/plan.json" --steps 1 # no timing in what follows
  count "$ranks" "${toy[@]}" "$@" --plan "$work/plan.json" --metrics "$work/whole"
  expect_status 0
  hash=$(summary parameter_hash) history=$(epochs_of)
  [[ $* != *int8* ]] || expect_summary compression int8
  again=("$ranks" "${toy[@]}" "$@" "${saving[@]}" "$work/checkpoints" --resume --exact
    --metrics "$work/metrics" --plan "$work/plan.json")
  rm -f "$work"/log.*
  count "${again[@]}" --inject stop@17:$((ranks - 1)) # in the second epoch
  expect_status 75
  expect 'no summary' test ! -e "$work/summary.json"
  expect 'the step in which it ended' grep -q 'ended after step 17 of 40, saved' "$work/err"
  # What compression has left over is each rank's own, and goes with it.
  [[ $* != *int8* ]] || expect "each rank's own states" test "$("$apps/ronda_checkpoint" show "$work/checkpoints" | grep -c "(this rank's own)")" -eq "$ranks"
  count "${again[@]}" --inject stop@20 # at the end of the epoch, before its test
  expect_status 75
  count "${again[@]}"
  expect_status 0
  expect_hash 'interrupted twice'
  expect_summary steps 40
  expect_summary samples 3988
  expect_summary resumed_step 20
  expect 'the same history' test "$(epochs_of)" = "$history"
  expect 'the same metrics, each step once' same_metrics
  all_seen_once 4
  count "${again[@]}" # there is nothing left to do
  expect_status 0
  expect_hash 'resumed at the end'
  expect 'the same history' test "$(epochs_of)" = "$history"
  expect 'the same metrics' same_metrics
}
aside same_bits 1 --optimizer nesterov --threads 1 # where there is a second core, batches are assembled beforehand
aside same_bits 2 --optimizer adam --clip-norm 1
aside same_bits 3 --accumulate 2 --schedule cosine
aside same_bits 2 --dtype mixed_bfloat16 --emulate-dtype --reduce-dtype float32 # the masters are saved
aside same_bits 2 --prune 0.8 --ema-decay 0.9
aside same_bits 4 --allreduce ring --weight-decay 0.01 --compression int8

# ---- on other numbers of ranks: the same samples, parameters within rounding

what='a checkpoint of 2 ranks'
count 2 "${toy[@]}" --save "$work/whole.safetensors"
expect_status 0
count 2 "${toy[@]}" "${saving[@]}" "$work/checkpoints" --inject stop@23:1
expect_status 75
for ranks in 1 2 3 4; do
  rm -rf "$work/c$ranks" "$work"/log.*
  cp -r "$work/checkpoints" "$work/c$ranks"
  count $ranks "${toy[@]}" --checkpoint-dir "$work/c$ranks" --resume --save "$work/resumed.safetensors"
  expect_status 0
  expect_summary resumed_step 23
  distance=$("$parameter_distance" "$work/whole.safetensors" "$work/resumed.safetensors")
  echo "resumed on $ranks ranks: parameters differ by $distance"
  # An order of summation more or less is 1e-7; over 17 steps a ReLU or a max-pool may fall on its other side.
  expect 'parameters within rounding' at_least 1e-4 "$distance"
  all_seen_once 4 24
done
count 3 "${toy[@]}" --checkpoint-dir "$work/checkpoints" --resume --exact
expect_status 2
expect_message 'number of ranks is 3 here, the checkpoint has 2'

# ---- on other nodes, where another algorithm owes other numbers: a training goes on without

what='int8 on other nodes'
elsewhere=(4 "${toy[@]}" --allreduce hierarchical --compression int8 --checkpoint-dir "$work/elsewhere")
export RONDA_RANKS_PER_NODE=2
count "${elsewhere[@]}" --inject stop@7
expect_status 75
export RONDA_RANKS_PER_NODE=1
count "${elsewhere[@]}" --resume
expect_status 0
expect_summary resumed_step 7
expect 'what is dropped' grep -q 'residual in another shape, which is dropped' "$work/err"
unset RONDA_RANKS_PER_NODE

# ---- what would be another training is refused, with both values

checkpoints=$work/checkpoints
usual() { # usual OPTION…: with the toy's size where another is not given
  [[ " $* " == *' --global-batch-size '* ]] || set -- --global-batch-size 100 "$@"
  [[ " $* " == *' --epochs '* ]] || set -- --epochs 4 "$@"
  count 2 "$@"
}
other() { # other REGEX OPTION…
  usual --checkpoint-dir "$checkpoints" --resume "${@:2}"
  expect_status 2
  expect_message "$1"
}
aside other "seed is '2' here, the checkpoint has '1'" --seed 2
aside other "global-batch-size is '50' here, the checkpoint has '100'" --global-batch-size 50
aside other "learning-rate is '0.5' here, the checkpoint has '0.05'" --learning-rate 0.5
aside other "optimizer is 'adam' here, the checkpoint has 'nesterov'" --optimizer adam --learning-rate 0.05
aside other "schedule is 'constant' here, the checkpoint has 'cosine'" --schedule constant
aside other "steps is '100' in all here, the checkpoint has '40'" --epochs 10
aside other 'model is .*smoothing 0.1.* here' --label-smoothing 0.1
aside other "model is .* here, .*; global-batch-size is '50' .*; seed is '2' here.*--allow-changes model,global-batch-size,.*seed" \
  --label-smoothing 0.1 --global-batch-size 50 --seed 2
aside other "'sede' is not the name of an option" --allow-changes sede
aside other "no 'strategy'; choose from .*seed" --allow-changes strategy
wait
usual --checkpoint-dir "$work/c2" --resume --epochs 5 --seed 2 --optimizer adam --allow-changes seed,steps,optimizer,learning-rate
expect_status 0
expect_summary resumed_step 40

# ---- where to begin

refused_to_count() { # refused_to_count REGEX OPTION…
  usual "${@:2}"
  expect_status 2
  expect_message "$1"
}
aside refused_to_count 'has checkpoints already, up to step 23.*--resume' --checkpoint-dir "$checkpoints"
aside refused_to_count 'need --checkpoint-dir' --resume
aside refused_to_count 'need --checkpoint-dir' --time-limit 1:00:00
aside refused_to_count '--keep' --checkpoint-dir "$work/none" --keep 0
aside refused_to_count "every N steps, or every 30s.*'often'" --checkpoint-dir "$work/none" --checkpoint-every often
aside refused_to_count 'time limit is H:M:S' --checkpoint-dir "$work/none" --time-limit 90
aside refused_to_count 'no checkpoint: give the folder of one' --resume-from "$checkpoints"
aside refused_to_count 'folder of checkpoints .*/toy' --checkpoint-dir "$mnist/train-labels-idx1-ubyte.gz/toy"
aside refused_to_count "expected kill, stop" --inject burn@1
wait
count 2 "${toy[@]}" --checkpoint-dir "$work/new" --resume
expect_status 0
expect 'a word that it starts anew' grep -q "no checkpoint in $work/new yet; starting anew" "$work/err"
rm -rf "$work"/log.*
older=$(steps_in "$work/checkpoints" | tail -2 | head -1) # how many there are is a matter of the disk's speed
count 2 "${toy[@]}" --checkpoint-dir "$work/checkpoints" --resume-from "$work/checkpoints/step-$older" --save "$work/resumed.safetensors"
expect_status 0
expect 'later checkpoints to be set aside' test -d "$work/checkpoints/step-23.aside"
expect 'the same parameters' cmp "$work/whole.safetensors" "$work/resumed.safetensors"

# ---- damage is passed over, and what the tool says of it all

damaged() { # damaged PARAMETERS: those of the whole training
  local whole=$1 newest=$work/checkpoints/step-23 older wrong command
  count 2 "${toy[@]}" "${saving[@]}" "$work/checkpoints" --inject stop@23:1
  expect_status 75
  run "$apps/ronda_checkpoint" verify "$work/checkpoints"
  expect_status 0
  older=$(steps_in "$work/checkpoints" | tail -2 | head -1)
  printf '\xff' | dd of="$newest/part-1.safetensors" bs=1 seek=300 conv=notrunc status=none
  run "$apps/ronda_checkpoint" verify "$work/checkpoints"
  expect_status 2
  expect_message 'step-23/part-1.safetensors is damaged'
  run "$apps/ronda_checkpoint" show --json "$work/checkpoints"
  expect_status 0
  expect 'the one before it' grep -q "\"step\": $older," "$work/out"
  count 2 "${toy[@]}" "${saving[@]}" "$work/checkpoints" --resume --save "$work/resumed.safetensors"
  expect_status 0
  expect 'a warning' grep -q '^ronda: warning: passing over the checkpoint of step 23: .*part-1.safetensors is damaged' "$work/err"
  expect_summary resumed_step "$older"
  expect 'the same parameters' cmp "$whole" "$work/resumed.safetensors"

  run "$apps/ronda_checkpoint" --help
  expect_status 0
  for command in list verify show export; do expect "$command in the help" grep -q "^ *$command " "$work/out"; done
  run "$apps/ronda_checkpoint" list "$work/checkpoints"
  expect_status 0
  expect 'the last' grep -q 'step-40  step 40, epoch 4, counted_training, 2 ranks' "$work/out"
  run "$apps/ronda_checkpoint" list --json "$work/checkpoints"
  expect_status 0
  expect 'the last' grep -q 'step-40","step":40,"epoch":4,"ranks":2,' "$work/out"
  expect 'no word of what was not read' test "$(grep -c '"whole"' "$work/out")" -eq 0
  mv "$work/checkpoints/step-40/part-1.safetensors" "$work/part"
  run "$apps/ronda_checkpoint" verify --json "$work/checkpoints"
  expect_status 2
  expect 'the last' grep -q 'step-40","whole":false,"error":".*part-1.safetensors' "$work/out"
  expect 'those before it' grep -q '"whole":true,"step":' "$work/out"
  mv "$work/part" "$work/checkpoints/step-40/part-1.safetensors"
  run "$apps/ronda_checkpoint" export "$work/exported.safetensors" "$work/checkpoints"
  expect_status 0
  expect 'the parameters as --save writes them' test "$("$parameter_distance" "$work/exported.safetensors" "$whole")" = 0
  count 2 "${toy[@]}" --init "$work/exported.safetensors" --steps 1
  expect_status 0
  for wrong in '' 'list' "list $work/nowhere" "list $work/$(printf 'x%.0s' {1..300})" "show $work/exported.safetensors" "burn $work/checkpoints" "verify $work"; do
    read -ra wrong <<<"$wrong"
    run "$apps/ronda_checkpoint" "${wrong[@]}"
    what="ronda_checkpoint ${wrong[*]}"
    expect_status 2
    expect_message .
  done
}
aside damaged "$work/whole.safetensors"

# ---- what lies beside a checkpoint's parameters: their average, the best model

averages() {
  count 2 "${toy[@]}" --ema-decay 0.9 --checkpoint-dir "$work/checkpoints" --save "$work/saved.safetensors"
  expect_status 0
  run "$apps/ronda_checkpoint" export "$work/exported.safetensors" "$work/checkpoints"
  expect_status 0
  expect 'the average, as --save writes it' test "$("$parameter_distance" "$work/exported.safetensors" "$work/saved.safetensors")" = 0
}
aside averages

best_models() {
  local best newest
  count 2 "${toy[@]}" --keep-best "${saving[@]}" "$work/checkpoints"
  expect_status 0
  run "$apps/ronda_checkpoint" verify "$work/checkpoints"
  expect_status 0
  expect 'the best model' grep -q 'best-step-.*the model of the best epoch, whole' "$work/out"
  newest=$(steps_in "$work/checkpoints" | tail -2 | head -1)
  count 2 "${toy[@]}" --keep-best "${saving[@]}" "$work/checkpoints" --resume-from "$work/checkpoints/step-$newest/"
  expect_status 0
  expect 'no word of a model that is lost' test "$(grep -c 'is lost' "$work/err")" -eq 0
  run "$apps/ronda_checkpoint" export "$work/checkpoints/step-40/part-0.safetensors" "$work/checkpoints"
  expect_status 2
  expect_message 'would overwrite an input'
  for best in "$work"/checkpoints/best-step-*; do
    printf '\xff' | dd of="$best" bs=1 seek=$(($(stat -c %s "$best") - 3)) conv=notrunc status=none
  done
  run "$apps/ronda_checkpoint" verify --json "$work/checkpoints"
  expect_status 2
  expect_message 'best-step-[0-9]*.safetensors is damaged'
  count 2 --global-batch-size 100 --epochs 5 --keep-best "${saving[@]}" "$work/checkpoints" --resume --allow-changes steps
  expect_status 0
  expect 'a warning' grep -q 'the best model so far, .*is lost, .*is damaged' "$work/err"
}
aside best_models

# ---- steps that are counted otherwise: with a larger batch the training goes on at a lower number

larger_batch() {
  local larger=(--epochs 4 --global-batch-size 200 --allow-changes global-batch-size,steps --checkpoint-every 5)
  count 2 "${toy[@]}" "${saving[@]}" "$work/checkpoints" --inject stop@23:1
  expect_status 75
  count 2 "${larger[@]}" --checkpoint-dir "$work/checkpoints" --resume --inject stop@14
  expect_status 75
  expect 'the samples that no step takes' grep -q '100 samples of this epoch are left out' "$work/err"
  expect 'the later checkpoint to be set aside' test -d "$work/checkpoints/step-23.aside"
  count 2 "${larger[@]}" --checkpoint-dir "$work/checkpoints" --resume
  expect_status 0
  expect_summary resumed_step 14
  count 2 "${larger[@]}" --checkpoint-dir "$work/end" --resume-from "$work/checkpoints/step-20"
  expect_status 0
  expect 'the end in another folder, too' test -d "$work/end/step-20"
}
aside larger_batch

# ---- reading that takes longer than ranks wait in a collective

slow_reading() {
  count 2 "${toy[@]}" "${saving[@]}" "$work/checkpoints" --inject stop@3
  expect_status 75
  count 2 "${toy[@]}" "${saving[@]}" "$work/checkpoints" --resume --communication-timeout 3 --inject slow-read@1
  expect_status 0
  expect_summary resumed_step 3
}
aside slow_reading

# ---- writing that fails

failing_write() {
  count 2 "${toy[@]}" "${saving[@]}" "$work/checkpoints" --inject fail-write@1:1
  expect_status 0
  expect 'one warning' test "$(grep -c '^ronda: warning: .*was not written: rank 1 on .*No space left' "$work/err")" -eq 1
  expect 'the last checkpoint' test -d "$work/checkpoints/step-40"
  expect 'nothing half-written' test -z "$(find "$work/checkpoints" -name '.*' ! -name .lock)"
}
aside failing_write

full_disk() {
  mkdir "$work/disk"
  # Room for the first checkpoint of the MLP, of 800 KB, and not for the second beside it.
  cat >"$work/full" <<END
mount -t tmpfs -o size=1400K none "$work/disk" || exit 77
mpirun -n 2 "$apps/mnist_mlp" --steps 300 --checkpoint-dir "$work/disk/c" --checkpoint-every 20 --summary-json "$work/summary.json"
status=\$?
"$apps/ronda_checkpoint" verify "$work/disk/c"
exit \$status
END
  what='a full disk'
  run unshare --mount bash "$work/full"
  expect_status 1
  expect 'the end to say so' grep -q '^ronda: error: the training is done, but its last checkpoint could not be written' "$work/err"
  expect 'warnings' grep -q '^ronda: warning: .*was not written: .*No space left on device.*training goes on' "$work/err"
  expect 'the good one to be whole' grep -q 'step-20  .*, whole$' "$work/out"
  expect_summary steps 300
}
((EUID != 0)) || ! unshare --mount true 2>/dev/null || aside full_disk

# The disk has room for the kept checkpoints but not for one more: the oldest is removed first.
tight_disk() {
  mkdir "$work/disk"
  cat >"$work/tight" <<END
mount -t tmpfs -o size=2600K none "$work/disk" || exit 77
mpirun -n 3 "$apps/mnist_mlp" --steps 160 --checkpoint-dir "$work/disk/c" --checkpoint-every 20
status=\$?
"$apps/ronda_checkpoint" verify "$work/disk/c"
exit \$status
END
  what='a disk with room for three checkpoints'
  run unshare --mount bash "$work/tight"
  expect_status 0
  expect 'a warning, once' test "$(grep -c '^ronda: warning: .*no room for another checkpoint: .*step-[0-9]* is removed, and 2 are kept' "$work/err")" -eq 1
  expect 'every checkpoint to be written' test "$(grep -c 'was not written' "$work/err")" -eq 0
  expect 'two whole ones, the last among them' test "$(grep -c ', whole$' "$work/out")" -eq 2
}
((EUID != 0)) || ! unshare --mount true 2>/dev/null || aside tight_disk
