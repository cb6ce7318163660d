#!/usr/bin/env bash
# ronda_run starts a training again whose rank was killed, and it goes on from its checkpoint: with the strategies whose ranks are not alike.
# restarts.sh APPS
source "$(dirname "$0")/lib.sh"
limit=60
few_images

# The program at its first start, before there is a checkpoint, kills a rank: PROGRAM FOLDER RANK ARGUMENT…
dies_once=$work/dies_once
cat >"$dies_once" <<END
#!/usr/bin/env bash
folder=\$1 rank=\$2
shift 2
compgen -G "\$folder/step-*" >/dev/null || set -- "\$@" --inject "kill@300:\$rank"
exec "$apps/mnist_mlp" "\$@"
END
chmod +x "$dies_once"

goes_on() { # goes_on RANKS RANK OPTION…: RANK is killed
  local ranks=$1 rank=$2 folder=$work/checkpoints
  shift 2
  what="ronda_run $* on $ranks ranks, of which rank $rank is killed"
  run "$apps/ronda_run" -n "$ranks" --backoff 0.05 --json "$work/report.json" "$dies_once" "$folder" "$rank" \
    --checkpoint-dir "$folder" --checkpoint-every 10 --steps 400 --quiet --data "$few" --global-batch-size 120 "$@" --summary-json "$work/summary.json"
  expect_status 0
  expect_summary steps 400
  expect 'steps that are not made again' test "$(summary resumed_step)" -ge 10 # checkpoints are written beside steps
  expect 'a failure' grep -q '"failures": [1-9]' "$work/report.json"
}

# The goodput counts only steps of this run of ronda_run; a stopped run has one too.
goodput() {
  local folder=$work/checkpoints run before=0
  for run in 'first 75 --inject stop@50:1' 'second 0'; do
    read -r what status_expected options <<<"$run"
    what="the goodput of the $what run"
    # shellcheck disable=SC2086
    run "$apps/ronda_run" -n 2 --json "$work/report.json" "$apps/mnist_mlp" --checkpoint-dir "$folder" --steps 100 --quiet --data "$few" \
      --global-batch-size 120 --inject slow@1:0 $options
    expect_status "$status_expected"
    python3 - "$work/report.json" "$folder" "$before" >"$work/after" <<'END' || fail "$(cat "$work/after" "$work/report.json")"
import json, pathlib, sys
report, folder, before = json.load(open(sys.argv[1])), pathlib.Path(sys.argv[2]), float(sys.argv[3])
newest = max(folder.glob("step-*"), key=lambda path: int(path.name[5:]))
manifest = json.load(open(newest / "manifest.json"))
print(manifest["train_seconds"])
assert report["steps"] == manifest["step"], "steps"
assert abs(report["useful_seconds"] - (manifest["train_seconds"] - before)) < 1e-9, "useful seconds"
assert 0 < report["goodput"] <= 1, "goodput"
END
    before=$(cat "$work/after")
  done
}
aside goodput
server=(--strategy parameter_server)
aside goes_on 3 2 "${server[@]}" # the server
aside goes_on 3 0 "${server[@]}"
aside goes_on 3 1 "${server[@]}" --asynchronous
aside goes_on 2 1 --strategy pipeline --accumulate 4
aside goes_on 3 1 --strategy sharded --shard-gradients --one-copy
wait
