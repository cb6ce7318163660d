#!/usr/bin/env bash
# The records that ranks leave, and ronda_trace: after a good end, after a killed rank, and for files that are none.
source "$(dirname "$0")/lib.sh"
few_images
stall=$(cd "${2:?usage: $0 APPS COLLECTIVES}" && pwd)/stall_program
records=$work/records

json() { # json FILE EXPRESSION: what python says of it, with the file's contents in `it`
  python3 -c 'import json, sys; it = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"
}

# A good end: kept because a folder was named; nothing is left in the usual place.
mpi 2 "$apps/mnist_mlp" --quiet --steps 20 --trace "$records"
expect_status 0
run "$apps/ronda_trace" --json "$work/trace.json" --timeline "$work/timeline.json" "$records"
expect_status 0
expect 'a good end' grep -q 'all came to the end in good order' "$work/out"
expect 'two ranks' test "$(json "$work/trace.json" '[r["rank"] for r in it["ranks"] if r["ended"]]')" == '[0, 1]'
expect 'every step on the timeline' test "$(json "$work/timeline.json" \
  'sorted({e["args"]["step"] for e in it["traceEvents"] if e["name"] == "bucket 0"}) == list(range(1, 21))')" == True
expect 'times that can be' test "$(json "$work/timeline.json" \
  'all(e["ts"] >= 0 and 0 <= e["dur"] < 60e6 for e in it["traceEvents"] if e["ph"] == "X")')" == True
run "$apps/ronda_trace" --json /dev/full --timeline "$work/again.json" "$records" # takes no other file with it
expect_status 1
expect_message 'cannot write /dev/full'
expect 'the timeline' cmp "$work/timeline.json" "$work/again.json"
run "$apps/ronda_trace" --timeline "$records/rank-0000.ronda" "$records"
expect_status 2
expect_message '--timeline .*rank-0000.ronda would overwrite an input'

# A killed rank: mpirun is faster than we; the records tell.
for how in kill:node kill:ring kill:mpi kill:ring:thread; do
  what=$how
  SECONDS=0
  RONDA_TRACE_DIR=$records timeout -k 5 40 mpirun -n 3 "$stall" $how >"$work/out" 2>"$work/err" </dev/null
  status=$? # that of the signal
  ((status != 0)) || fail 'exit status 0'
  ((SECONDS < 30)) || fail "over after $SECONDS s"
  run "$apps/ronda_trace" --json "$work/trace.json" "$records"
  expect_status 0
  # On a busy machine mpirun may end another before that one's thread has come as far.
  expect 'rank 2 to be named' test "$(json "$work/trace.json" '2 in it["late"]')" == True
  expect 'its collective to be named' grep -Eq 'rank 2 on .*: its process is dead, last seen after bucket 0 by [a-z]* of step 2' "$work/out"
done

# After kill -9 of everything nobody is left to say where the records are: without an argument it lists the jobs.
what='a list of jobs'
mpirun -n 2 "$apps/mnist_softmax" --quiet --epochs 100000 >"$work/out" 2>"$work/err" </dev/null &
launcher=$!
for ((i = 0; i < 200; ++i)); do
  run "$apps/ronda_trace"
  ! grep -q 'running .* mnist_softmax --quiet --epochs 100000$' "$work/out" || break
  sleep 0.1
done
expect_status 0
expect 'the running job' grep -qE '^[0-9]{4}-[0-9-]+ [0-9:]+  2 ranks +running +/.*/ronda-.* mnist_softmax --quiet --epochs 100000$' "$work/out"
folder=$(sed -nE 's/.* 2 ranks +running +(.*)  mnist_softmax --quiet --epochs 100000$/\1/p' "$work/out" | head -1)
for ((i = 0; i < 200; ++i)); do # one rank may be later than the other
  run "$apps/ronda_trace" "$folder"
  ! grep -q 'records of 2 of 2 ranks' "$work/out" || break
  sleep 0.1
done
mapfile -t processes < <(pgrep -P "$launcher")
kill -KILL "$launcher" "${processes[@]}"
wait "$launcher"
for ((i = 0; i < 100; ++i)); do
  run "$apps/ronda_trace"
  ! grep -q 'running' "$work/out" || { sleep 0.1; continue; }
  break
done
folder=$(sed -nE 's/.* 2 ranks +ended badly +(.*)  mnist_softmax --quiet --epochs 100000$/\1/p' "$work/out" | head -1)
expect 'the killed job' test -n "$folder"
run "$apps/ronda_trace" "$folder"
expect_status 0
expect 'its ranks' grep -q 'records of 2 of 2 ranks' "$work/out"
rm -r "${folder:-$work/none}"
run "$apps/ronda_trace" --json "$work/trace.json"
expect_status 2
expect_message 'name the folder'

# A rank that went another way is named by the records as well.
what='a skipped collective'
run env RONDA_TRACE_DIR="$records" mpirun -n 3 "$stall" skip:ring
run "$apps/ronda_trace" --json "$work/trace.json" "$records"
expect_status 0
expect 'rank 2 to be named' test "$(json "$work/trace.json" 'it["divergence"]["odd"]')" == '[2]'
expect 'the place to be named' grep -q 'is bucket 1 by ring of step 2 .* on ranks 0 and 1, and bucket 2 by ring of step 2' "$work/out"

# One rank's file is missing: said, and the rest explained.
rm "$records"/rank-0001.ronda
run "$apps/ronda_trace" "$records"
expect_status 0
expect 'the missing rank to be named' grep -q 'records of 2 of 3 ranks; there is none of rank 1' "$work/out"

# Records that somebody cuts off while their ranks run: the job goes on without.
what='live records that are cut off'
rm -rf "$work/cut"
timeout -k 5 60 mpirun -n 2 "$apps/mnist_mlp" --quiet --epochs 1000000 --trace "$work/cut" \
  --checkpoint-dir "$work/checkpoints" --time-limit 0:0:5 >"$work/out" 2>"$work/err" </dev/null &
job=$!
for ((i = 0; i < 300 && $(ls "$work/cut" 2>/dev/null | wc -l) < 2; ++i)); do sleep 0.05; done
sleep 0.3
truncate -s 0 "$work"/cut/*.ronda
wait $job
status=$?
expect_status 75 # saved at its limit of time
expect 'records without contents' test "$(cat "$work"/cut/*.ronda | wc -c)" == 0

# What is no record.
wrong() { # wrong REGEX FILE…
  what="ronda_trace ${*:2}"
  run "$apps/ronda_trace" "${@:2}"
  expect_status 2
  expect_message "$1"
}
one=$records/rank-0000.ronda
echo 'no record' >"$work/text"
head -c 100000 "$one" >"$work/short"
{ head -c 8 "$one"; printf '\x63\0\0\0'; tail -c +13 "$one"; } >"$work/new"
{ head -c 4096 "$one"; head -c 131072 /dev/urandom; } >"$work/random"
mkdir "$work/empty"
wrong 'text: this is something else' "$work/text"
wrong 'short: it has 100000 bytes of 135168' "$work/short"
wrong 'new: it has version 99, this program reads 2' "$work/new"
wrong 'cannot open .*/nothing' "$work/nothing"
wrong 'no records .* in .*/empty' "$work/empty"
what='a folder with a short record and one with the greatest of numbers'
mkdir "$work/mixed"
cp "$work/short" "$work/mixed/rank-0000.ronda"
{ head -c 192 "$records/rank-0002.ronda"; printf '\xff%.0s' {1..8}; tail -c +201 "$records/rank-0002.ronda"; } >"$work/mixed/rank-0002.ronda"
run "$apps/ronda_trace" "$work/mixed"
expect_status 0
expect 'the short one to be left out' grep -q 'warning: .*/rank-0000.ronda: it has 100000 bytes of 135168.*left out' "$work/err"
expect 'the other to be read' grep -q 'records of 1 of 3 ranks; there is none of ranks 0 and 1' "$work/out"
what='random bytes in the ring'
run "$apps/ronda_trace" "$work/random" # indices do not fit: read as empty places
expect_status 0
what=help
run "$apps/ronda_trace" --help
expect_status 0
expect 'the options' grep -q -- --timeline "$work/out"

# A folder that cannot be.
mpi 2 "$apps/mnist_mlp" --steps 2 --trace /proc/nowhere
expect_status 2
expect_message '/proc/nowhere.*--trace'
