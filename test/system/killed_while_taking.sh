#!/usr/bin/env bash
# Ranks are killed while they take shared memory, at random times: no memory is left in /dev/shm. (An empty file may be, of ranks that
# were killed in the moment between its making and the last one's opening it.)
source "$(dirname "$0")/lib.sh"
program=$(cd "${2:?usage: $0 APPS COLLECTIVES}" && pwd)/take_memory
ranks=3
free=$(df --output=avail -k /dev/shm | tail -1) # KiB
each=$((free / 1024 / 2 / ranks))
((each <= 128)) || each=128
((each >= 8)) || skip "/dev/shm has $free KiB free"
RANDOM=$((21 * ${RONDA_TEST_SEED:-1}))

here() { find /dev/shm -maxdepth 1 -name 'ronda.*' -type f 2>/dev/null | sort; }
here >"$work/before" # of others
left() { here | comm -13 "$work/before" -; }
for turn in {1..8}; do
  what="turn $turn"
  : >"$work/out"
  timeout -k 5 60 mpirun -n $ranks "$program" $each >"$work/out" 2>"$work/err" </dev/null &
  launcher=$!
  for ((i = 0; i < 300; ++i)); do
    [[ ! -s $work/out ]] || break
    sleep 0.05
  done
  expect 'the ranks to begin' test -s "$work/out"
  sleep "0.$(printf '%03d' $((RANDOM % 300)))"
  mapfile -t processes < <(pgrep -f "^$program $each")
  kill -KILL "${processes[RANDOM % ${#processes[@]}]}"
  ((turn % 3 != 0)) || kill -KILL "${processes[@]}" 2>/dev/null # nobody cleans up
  wait $launcher
  memory=$(left | xargs -r du -k | awk '{ sum += $1 } END { print sum + 0 }')
  ((memory == 0)) || fail "$memory KiB left: $(left)"
  left | xargs -r rm -f
done
