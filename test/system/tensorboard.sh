#!/usr/bin/env bash
# TensorBoard's own reader reads what --tensorboard has written: of a run, and of one that goes on from a checkpoint. Needs a Python
# that has TensorBoard (RONDA_TENSORBOARD_PYTHON, or python3): scripts/check_tensorboard.sh installs one and runs this.
source "$(dirname "$0")/lib.sh"
limit=60
python=${RONDA_TENSORBOARD_PYTHON:-python3}
"$python" -c 'import tensorboard' 2>/dev/null || {
  echo "skipped: $python has no TensorBoard"
  exit 77
}

mpi 2 "$apps/mnist_softmax" --epochs 2 --global-batch-size 6000 --tensorboard "$work/logs" --metrics "$work/metrics" \
  --checkpoint-dir "$work/saved" --checkpoint-every 7 --inject kill@13
expect 'a failure' test "$status" -ne 0
mpi 2 "$apps/mnist_softmax" --epochs 2 --global-batch-size 6000 --tensorboard "$work/logs" --metrics "$work/metrics" \
  --checkpoint-dir "$work/saved" --checkpoint-every 7 --resume
expect_status 0
expect 'two files' test "$(find "$work/logs" -name 'events.out.tfevents.*' | wc -l)" -eq 2
expect 'the same numbers as in the metrics file' "$python" - "$work/logs" "$work/metrics" <<'END'
import json, math, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
lines = [json.loads(line) for line in open(sys.argv[2])]
def scalars(tag): return {event.step: event.value for event in events.Scalars(tag)}
def same(a, b): return math.isclose(a, b, rel_tol=1e-6)
assert len(lines) == 20, len(lines)
for tag, key in (("train/loss", "loss"), ("train/accuracy", "train_accuracy"), ("learning_rate", "learning_rate")):
    found = scalars(tag)
    assert sorted(found) == list(range(1, 21)), (tag, sorted(found))
    assert len(events.Scalars(tag)) == 20, "steps that were done again are there twice"
    assert all(same(found[line["step"]], line[key]) for line in lines), tag
for tag, key in (("test/loss", "test_loss"), ("test/accuracy", "test_accuracy"), ("epoch/loss", "epoch_loss")):
    found = scalars(tag)
    assert sorted(found) == [10, 20], (tag, found)
    assert all(same(found[line["step"]], line[key]) for line in lines if line["step"] in found), tag
END
