#!/usr/bin/env bash
# A stranger on the network hears what the watchdogs of two hosts tell one another, and sends it again, and worse, for seconds: the job
# trains on, and takes no more memory.
source "$(dirname "$0")/lib.sh"
limit=90
here=$(cd "$(dirname "$0")" && pwd)
unset OMPI_MCA_btl # over the network
command -v python3 >/dev/null || skip 'no python3'

# On the head of the bed: the attack on each host's ranks, and the memory of a rank before and after.
cat >"$work/on_head" <<'END'
here=$1 folder=$2
shift 2
for host in ronda1 ronda2; do
  bed on $host python3 "$here/forge_datagrams.py" 6 >"$folder/attack.$host" 2>&1 &
done
sleep 0.5
mpirun "$@" &
job=$!
memory() { bed on ronda2 bash -c 'for p in $(pgrep mnist_mlp); do sed -n "s/VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p" /proc/$p/status; done' | sort -n | tail -1; }
for ((i = 0; i < 300 && $(stat -c %s "$folder/metrics" 2>/dev/null || echo 0) == 0; ++i)); do sleep 0.1; done
memory >"$folder/before"
sleep 7
memory >"$folder/after"
wait $job
END

what='an attack on two hosts of two ranks'
run "$beds/netns.sh" 2 2 bash "$work/on_head" "$here" "$work" "$apps/mnist_mlp" --quiet --epochs 1000000 --metrics "$work/metrics" \
  --checkpoint-dir "$work/checkpoints" --time-limit 0:0:20
((status != 77)) || skip "$(tail -1 "$work/err")"
expect_status 75 # saved at its limit of time
for host in ronda1 ronda2; do
  cat "$work/attack.$host"
  expect "an attack from $host" grep -Eq 'heard [1-9].* sent [0-9]{4,}' "$work/attack.$host"
done
echo "memory: $(cat "$work/before") kB, then $(cat "$work/after") kB"
expect 'no growth of memory' test "$(cat "$work/after")" -lt $(($(cat "$work/before") + 6000))
