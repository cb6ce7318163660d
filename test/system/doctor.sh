#!/usr/bin/env bash
# ronda_doctor: a line for everything, the same for programs, and a status that tells whether training works, which it tries.
source "$(dirname "$0")/lib.sh"
limit=90

json() { # json EXPRESSION: what python says of it, with the file's contents in `it`
  python3 -c 'import json, sys; it = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$work/doctor.json" "$1"
}

for ranks in 1 2; do
  rm -f "$work/doctor.json"
  mpi $ranks "$apps/ronda_doctor" --json "$work/doctor.json"
  expect_status 0
  for subject in Ronda layers MPI JPEG PNG HDF5 ONNX 'GPU driver' NCCL cuDNN cuBLASLt cores threads bfloat16 memory /dev/shm 'huge pages' mpirun started cache MNIST training; do
    expect "one line of $subject" test "$(grep -cE "^ {9}$subject |^(off|missing|broken) +$subject " "$work/out")" -eq 1
  done
  expect 'as many lines as findings' test "$(wc -l <"$work/out")" -eq "$(json 'len(it["findings"])')"
  expect 'it can train' test "$(json 'it["can_train"]')" == True
  expect 'a remedy for what is not fine' test "$(json 'all("remedy" in f for f in it["findings"] if f["state"] != "fine")')" == True
  expect 'GPUs as programs read them' test "$(json 'it["can_train_on_gpu"] == bool(it["gpus"])')" == True
done
# A build for CPUs misses nothing for want of a GPU.
if grep -q 'Ronda .*without CUDA' "$work/out" && ! grep -q 'GPU driver .*CUDA' "$work/out"; then
  expect 'no GPU missed' test "$(grep -cE '^(missing|off|broken) +(GPU|NCCL|cuDNN|cuBLASLt)' "$work/out")" -eq 0
fi
expect 'how it was started' grep -q 'started .*as rank 0 of 2, on one host' "$work/out"

# A cache that cannot be is off; an MPI that cannot begin is broken.
what='no cache'
RONDA_CACHE_DIR=/proc/nowhere run "$apps/ronda_doctor"
expect_status 0
expect 'the remedy' grep -qE '^off +cache +no folder that can be written to; .*RONDA_CACHE_DIR' "$work/out"
what='an MPI that cannot begin'
OMPI_MCA_pml=nothing OMPI_MCA_btl=nothing run "$apps/ronda_doctor" --json "$work/doctor.json"
expect_status 1
expect 'broken' grep -qE '^broken +training +ends with status' "$work/out"
expect 'it cannot train' test "$(json 'it["can_train"]')" == False

what='a place where no file can be'
run "$apps/ronda_doctor" --json /proc/nowhere/doctor.json
expect_status 2
expect_message '/proc/nowhere'
expect 'nothing was examined before' test ! -s "$work/out"

what='bad options'
run "$apps/ronda_doctor" --no-such-option
expect_status 2
expect_message '--no-such-option'
run "$apps/ronda_doctor" --help
expect_status 0
expect 'help' grep -q 'Exit status: 0 where it can train' "$work/out"
