#!/usr/bin/env bash
# A training by parameter servers has the losses of mirrored replicas, as many as there are workers. A server or a worker is
# killed, and it goes on; so do mirrored replicas from its checkpoint, and it from theirs.
# parameter_server.sh APPS COUNTED_TRAINING
source "$(dirname "$0")/lib.sh"
counted=${2:?usage: $0 APPS COUNTED_TRAINING}
limit=60
source "$(dirname "$0")/counting.sh"

few_images

# ---- the losses of 100 steps

losses() { sed -n 's/.*"loss": \([^,}]*\).*/\1/p' "$1"; }
# as_mirrored WORKERS SERVERS: within 1e-5, whatever products were chosen by timing. (Not with seed 1: from step 14 on, other roundings of
# the first layer lead to other losses, by 1e-3 in the end. Seeds 2 to 6 stay within 1e-6.)
as_mirrored() {
  local served=(--strategy parameter_server --servers "$2") steps=(--steps 100 --seed 2 --quiet)
  trained "$1" mnist_mlp "${steps[@]}" --metrics "$work/mirrored"
  trained $(($1 + $2)) mnist_mlp "${steps[@]}" "${served[@]}" --metrics "$work/served"
  expect_summary count "$2" # of servers
  expect 'bytes pushed and pulled' test "$(summary pushed_bytes)" -gt 40000000 -a "$(summary pulled_bytes)" -gt 40000000
  paste <(losses "$work/mirrored") <(losses "$work/served") |
    awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-5) bad = 1 } END { exit bad || NR != 100 }' ||
    fail "losses differ from those of $1 mirrored ranks"
}
aside as_mirrored 1 1
aside as_mirrored 2 1
aside as_mirrored 2 2
aside as_mirrored 1 2

# ---- by a file of tasks, and beside workers: here all ranks are on one host

placed=(--strategy parameter_server --steps 20 --plan "$work/placed.json")
trained 4 mnist_mlp "${placed[@]}" --servers 2
hash=$(summary parameter_hash)
printf '{"cluster": {"worker": ["localhost:1", "localhost:2"], "ps": ["localhost:3", "localhost:4"]}}' >"$work/cluster.json"
for how in '--servers-beside' "--cluster $work/cluster.json"; do
  # shellcheck disable=SC2086
  trained 4 mnist_mlp "${placed[@]}" $how
  expect_summary count 2
  expect_summary parameter_hash "$hash"
done
mpi 3 "$apps/mnist_mlp" "${placed[@]}" --cluster "$work/cluster.json"
expect_status 2
expect_message 'cluster.json: ps 1 \(localhost:4\) has no rank: host .* has 3 ranks'

# ---- killed and resumed

toy=(--global-batch-size 100 --epochs 4 --optimizer adam --plan "$work/plan.json") # 997 samples: 10 steps an epoch, the last of 97
served=(--strategy parameter_server --servers 2 --compression int8) # what it loses, and its noise, go on too
saving=(--checkpoint-every 5 --checkpoint-dir "$work/checkpoints" --resume)
count 4 "${toy[@]}" "${served[@]}" --steps 1 # no timing in what follows
count 4 "${toy[@]}" "${served[@]}"
expect_status 0
hash=$(summary parameter_hash)
all_seen_once 4
rm -f "$work"/log.*
for rank in 3 0 2; do # servers and a worker
  count 4 "${toy[@]}" "${served[@]}" "${saving[@]}" --exact --inject "kill@$((9 + attempt * 3)):$rank"
  expect 'a killed rank ends the job' test "$status" -ne 0
done
count 4 "${toy[@]}" "${served[@]}" "${saving[@]}" --exact
expect_status 0
[[ $(summary parameter_hash) == "$hash" && -n $hash ]] || fail "killed three times: parameters $(summary parameter_hash), expected $hash"
all_seen_once 4

# ---- by others, and on other numbers of ranks

goes_on() { # goes_on RANKS OPTION…: from the checkpoint after step 20
  local ranks=$1
  shift
  count "$ranks" "${toy[@]}" --resume-from "$work/first/step-20" "$@"
  expect_status 0
  expect_summary steps 40
  expect_summary samples 3988
  expect_summary resumed_step 20
}
toy=(--global-batch-size 100 --epochs 4 --optimizer adam)
count 3 "${toy[@]}" --strategy parameter_server --checkpoint-dir "$work/first" --inject stop@20
expect_status 75
goes_on 2
goes_on 1
goes_on 2 --strategy parameter_server
goes_on 4 --strategy parameter_server --servers 2
goes_on 3 --strategy sharded
rm -rf "$work/first"
count 2 "${toy[@]}" --strategy sharded --checkpoint-dir "$work/first" --inject stop@20
expect_status 75
goes_on 3 --strategy parameter_server --servers 2

# ---- workers that do not wait for each other

asynchronous=(--strategy parameter_server --asynchronous --max-staleness 2)
rm -f "$work"/log.*
count 4 "${toy[@]}" "${asynchronous[@]}"
expect_status 0
expect_summary steps 40
expect_summary samples 3988
expect_summary dropped 0
all_seen_once 4
rm -rf "$work/checkpoints"
for own_pace in "${asynchronous[*]}" '--strategy parameter_server --replicas-to-aggregate 1'; do
  rm -rf "$work/checkpoints"
  for rank in 1 3; do # a worker and the server
    # shellcheck disable=SC2086
    count 4 "${toy[@]}" $own_pace "${saving[@]}" --inject "kill@$((10 + 7 * rank)):$rank"
    expect 'a killed rank ends the job' test "$status" -ne 0
  done
  # shellcheck disable=SC2086
  count 4 "${toy[@]}" $own_pace "${saving[@]}"
  expect_status 0
  expect_summary steps 40
done
wait
