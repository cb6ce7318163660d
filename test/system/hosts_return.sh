#!/usr/bin/env bash
# ronda_run over four hosts: one is cut off for good, another too, but returns. The training ends with all its steps, every sample used
# once an epoch, on the hosts that were there.   hosts_return.sh APPS COUNTED_TRAINING
source "$(dirname "$0")/lib.sh"
counted=${2:?usage: $0 APPS COUNTED_TRAINING} epochs=20
limit=100
source "$(dirname "$0")/counting.sh"
unset OMPI_MCA_btl # over the network
run "$beds/netns.sh" 1 1 true
((status != 77)) || skip "$(tail -1 "$work/err")"

# What happens on the head of the bed: FILE FOLDER COMMAND…
cat >"$work/begin" <<'END'
folder=$1
shift
"$@" &
job=$!
started() { # started N RANKS: the N-th start, of so many ranks, has made steps
  for ((i = 0; i < 400; ++i)); do
    [[ $(sed -n "$1s/^-n \([0-9]*\).*/\1/p" "$folder/starts" 2>/dev/null) != "$2" ]] ||
      ! grep -qs "^$1 " "$folder/log.0" || return 0
    sleep 0.1
  done
  echo "no start $1 of $2 ranks"
  kill -KILL $job
  exit 99
}
END
cat "$work/begin" - >"$work/two_cut" <<'END'
started 1 4
bed cut ronda3 all # for good
started 2 3
bed cut ronda2 all
started 3 2
bed heal ronda2 all
started 4 3
wait $job
END
cat "$work/begin" - >"$work/frozen" <<'END'
started 1 2
bed freeze ronda2
for ((i = 0; i < 400; ++i)); do
  ! grep -qs 'does not leave' "$folder/err" || break
  sleep 0.1
done
bed thaw ronda2
started 2 2
wait $job
END

# supervise HOSTS ON_HEAD SLOW OPTION…: ronda_run over hosts of a rank each, to whom ON_HEAD happens. The first SLOW starts take so
# long over a step that they do not come to the end before it.
supervise() {
  local hosts=$1 on_head=$work/../$2 slow=$3 steps=$((10 * epochs))
  shift 3
  # mpirun as the bed's users have it, told what the ranks need to know. Its n-th start is attempt n.
  cat >"$work/launcher" <<END
#!/usr/bin/env bash
[[ "\$*" != *' true' ]] || exec $(command -v mpirun) --bind-to none --oversubscribe "\$@" # a trial of the launcher, no start
echo "\$*" >>"$work/starts"
export COUNT_LOG=$work/log COUNT_ATTEMPT=\$(wc -l <"$work/starts")
export COUNT_DELAY=\$((COUNT_ATTEMPT > $slow ? 1000 : 100000))
exec $(command -v mpirun) --bind-to none --oversubscribe -x COUNT_LOG -x COUNT_ATTEMPT -x COUNT_DELAY "\$@"
END
  chmod +x "$work/launcher"
  run "$beds/netns.sh" "$hosts" 1 bash "$on_head" "$work" "$apps/ronda_run" --launcher "$work/launcher" \
    --hosts "$(seq -s, -f 'ronda%g' "$hosts")" --backoff 0.2 --look-every 1 --json "$work/report.json" "$@" \
    "$counted" --quiet --global-batch-size 100 --epochs "$epochs" --communication-timeout 3 \
    --checkpoint-dir "$work/checkpoints" --checkpoint-every 5 --metrics "$work/metrics" --summary-json "$work/summary.json"
  expect_status 0
  ((status == 0)) || return
  expect_summary steps $steps
  expect_summary samples $((997 * epochs))
  all_seen_once "$epochs"
  expect 'a line of metrics for each step' test "$(sed 's/{"step": \([0-9]*\).*/\1/' "$work/metrics" | tr '\n' ' ')" = "$(echo $(seq $steps)) "
  expect 'the goodput' grep -q 'ronda_run: .*goodput [0-9.]* %' "$work/err"
  expect 'the steps in the report' grep -q "\"steps\": $steps," "$work/report.json"
  grep '^ronda_run: ' "$work/err" | sed "s/^/$what: /"
}

two_cut() {
  what='four hosts, of which one returns'
  supervise 4 two_cut 3
  expect '4, 3, 2 ranks, then 3' test "$(cut -d' ' -f2 "$work/starts" | tr '\n' ' ')" = '4 3 2 3 '
  expect 'two failures' grep -q '"failures": 2' "$work/report.json"
  expect 'the word of it' grep -q 'ronda2 is back: the job saves' "$work/err"
}
# As one whose disk hangs may: its ranks are missed by the others, and mpirun waits for it.
frozen() {
  what='a frozen host that answers'
  supervise 2 frozen 1 --agent 'bed on' --grace 2
  expect 'the word of it' grep -q 'the job has failed, but its launcher does not leave: ends the job' "$work/err"
}
aside two_cut
aside frozen
wait
