#!/usr/bin/env bash
# A signal at any moment, from the start of the process over planning and timing to the first steps: the status is 75 and the word
# of it is right, or the process had not begun; and --resume goes on from what the word says. Draws moments by RONDA_TEST_SEED.
source "$(dirname "$0")/lib.sh"
RANDOM=${RONDA_TEST_SEED:-1}
few_images
training=("$apps/mnist_cnn" --data "$few" --epochs 50 --batch-size 32)

# signalled SIGNAL MILLISECONDS RANKS: to rank 0 alone.
signalled() {
  local signal=$1 milliseconds=$2 ranks=$3 process waited launched last word
  what="SIG$signal after $milliseconds ms, $ranks ranks"
  export RONDA_CACHE_DIR=$work/cache # empty: it plans and times
  local launcher=(env --default-signal=INT) # what runs in the background of a script ignores it otherwise
  ((ranks == 1)) || launcher+=(mpirun -n "$ranks")
  "${launcher[@]}" bash -c 'process=$0/process.${OMPI_COMM_WORLD_RANK:-0}; echo $$ >"$process.part"; mv "$process.part" "$process"
    exec "$@"' "$work" "${training[@]}" --checkpoint-dir "$work/checkpoints" >"$work/out" 2>"$work/err" &
  launched=$!
  for ((waited = 0; waited < 400; ++waited)); do
    [[ ! -s $work/process.0 ]] || break
    sleep 0.01
  done
  sleep "$(printf '%d.%03d' $((milliseconds / 1000)) $((milliseconds % 1000)))"
  process=$(cat "$work/process.0")
  kill "-$signal" "$process"
  wait "$launched" 2>/dev/null
  status=$?
  word=$(grep -E '^ronda: ended (before|after)' "$work/err")
  if [[ -z $word ]]; then # it had not begun: nothing of ours is there
    ((status != 0 && status != 75)) || fail "exit status $status without a word"
    expect 'nothing begun' test ! -e "$work/checkpoints"
    return
  fi
  expect_status 75
  expect 'no error' test "$(grep -c '^ronda: error' "$work/err")" -eq 0
  last=$(sed -n 's/^ronda: ended after step \([0-9]*\) of .*, saved.*/\1/p' <<<"$word")
  if [[ -n $last ]]; then
    run "$apps/ronda_checkpoint" verify "$work/checkpoints/step-$last"
    expect_status 0
  else
    expect 'no step saved' test -z "$(find "$work/checkpoints" -name 'step-*' 2>/dev/null)"
  fi
  mpi "$ranks" "${training[@]}" --checkpoint-dir "$work/checkpoints" --resume --steps "$((${last:-0} + 2))" \
    --allow-changes steps
  expect_status 0
  if [[ -n $last ]]; then expect "to have gone on from step $last" grep -q 'going on from' "$work/out" "$work/err"; fi
}
for signal in TERM USR1 INT; do
  for milliseconds in 0 $((RANDOM % 100)) $((RANDOM % 600)) $((RANDOM % 2000)); do
    aside signalled $signal "$milliseconds" 1
  done
  aside signalled $signal $((RANDOM % 2000)) 2
done

wait
