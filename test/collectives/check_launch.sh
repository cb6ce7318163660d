#!/bin/sh
# check_launch.sh STATUS MESSAGES TEXT HOW PROGRAM [MPIEXEC…]: runs PROGRAM HOW, by MPIEXEC where it is given, and requires
# that exit status (`bad`: not 0, which Open MPI 4.1 may make its own of: it sometimes crashes when it ends), that number of
# our error messages, and TEXT once in its output; for wrong input (2) there must be no message of MPI_Abort.
status=$1 messages=$2 text=$3 how=$4 program=$5
shift 5
RONDA_TEST_FOLDER=$(mktemp -d)
export RONDA_TEST_FOLDER
trap 'rm -rf "$RONDA_TEST_FOLDER"' EXIT
output=$(timeout -k 5 20 "$@" "$program" "$how" 2>&1)
got=$?
echo "$output"
fail() { echo "check_launch: $1"; exit 1; }
[ "$status" = bad ] && [ "$got" -ne 0 ] && [ "$got" -ne 124 ] && status=$got
[ "$got" -eq "$status" ] || fail "exit status $got, expected $status"
[ "$(echo "$output" | grep -c 'ronda: error: ')" -eq "$messages" ] || fail "expected $messages messages"
[ "$status" != 2 ] || ! echo "$output" | grep -q MPI_ABORT || fail "no words of MPI_Abort: all ranks end in good order"
[ "$(echo "$output" | grep -c "$text")" -eq 1 ] || fail "expected '$text' once"
