#!/usr/bin/env bash
# scripts/scaling.sh: what it leaves of a short training on one and two ranks, and what it refuses.
source "$(dirname "$0")/lib.sh"
limit=100
scaling=$(cd "$(dirname "$0")/../../scripts" && pwd)/scaling.sh
build=$(dirname "$apps")

what='softmax on 1 and 2 ranks'
run "$scaling" --build "$build" --ranks 2 --rounds 1 --out "$work/scaling" mnist_softmax --steps 20
expect_status 0
cat >"$work/check.py" <<'END'
import json, sys, xml.dom.minidom
from pathlib import Path
folder = Path(sys.argv[1])
results = json.loads((folder / "scaling.json").read_text())["results"]
assert [(one["kind"], one["ranks"], one["global_batch_size"]) for one in results] == [
    ("strong", 1, 128), ("strong", 2, 128), ("weak", 1, 128), ("weak", 2, 256)], results
for one in results:
    alone = next(other for other in results if other["kind"] == one["kind"] and other["ranks"] == 1)
    assert one["speedup"] == one["samples_per_second"] / alone["samples_per_second"] > 0
assert xml.dom.minidom.parse(str(folder / "scaling.svg")).documentElement.tagName == "svg"
rows = [line for line in (folder / "scaling.md").read_text().splitlines() if line.startswith(("| strong", "| weak"))]
assert len(rows) == 4, rows
print((folder / "scaling.md").read_text())
END
expect 'a table, a plot and their numbers' python3 "$work/check.py" "$work/scaling"
expect 'nothing half written' test "$(find "$work/scaling" -type f | wc -l)" -eq 3

# A batch that the application's own options have is that of one rank.
for batch in '--global-batch-size 192' --batch-size=192; do
  what="softmax with $batch"
  # shellcheck disable=SC2086
  run "$scaling" --build "$build" --ranks 2 --rounds 1 --kind weak --out "$work/own" mnist_softmax --steps 20 $batch
  expect_status 0
  expect 'batches of 192 and 384' grep -q '^| weak | 2 | 384 |' "$work/own/scaling.md"
done

refused() { # refused MESSAGE OPTION…
  local message=$1
  shift
  what="scaling.sh $*"
  run "$scaling" --build "$build" --out "$work/none" "$@"
  expect_status 2
  expect "'$message'" grep -q -- "$message" "$work/err"
}
refused 'no program .*mnist_forest' mnist_forest
refused "not numbers.*'two'" --ranks two mnist_softmax
refused 'from 1 up' --rounds 0 mnist_softmax
refused '{ranks} is missing' --launcher mpirun mnist_softmax
refused 'starter is missing' --launcher 'starter {ranks}' mnist_softmax
refused 'adamant' mnist_softmax --optimizer adamant
refused 'leave it out' mnist_softmax --summary-json "$work/own.json"
