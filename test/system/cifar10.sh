#!/usr/bin/env bash
# The networks for colour images, on files in CIFAR-10's format made here: what they reach, that augmented trainings are the same on
# three ranks as on one, and after a resumption, and what is refused.
source "$(dirname "$0")/lib.sh"
limit=100

scripts=$(cd "$(dirname "$0")/../../scripts" && pwd)
python3 "$scripts/peers/colour_images.py" "$work/images"

options=(--data "$work/images" --optimizer adam --learning-rate 0.002 --schedule constant --global-batch-size 50 --threads 1 --quiet
  --summary-json "$work/summary.json")
mpi 2 "$apps/cifar10_cnn" "${options[@]}" --epochs 6 --metrics "$work/metrics.jsonl"
expect_status 0
echo "cifar10_cnn: $(summary test_accuracy) of the test images"
expect 'a good fit' at_least "$(summary test_accuracy)" 0.9

# Its pictures.
what='plot_training.sh'
plot=$scripts/plot_training.sh
run "$plot" "$work/metrics.jsonl" "$work/summary.json"
expect_status 0
cat >"$work/pictures.py" <<'END'
import json, sys, xml.dom.minidom
from pathlib import Path
folder = Path(sys.argv[1])
def elements(name, tag):
    return xml.dom.minidom.parse(str(folder / name)).getElementsByTagName(tag)
points = [line.getAttribute("points").split() for line in elements("metrics.svg", "polyline")]
assert [len(line) for line in points] == [72, 6, 72, 6, 72], points  # loss and accuracy of 72 steps and 6 tests, the rate
matrix = json.loads((folder / "summary.json").read_text())["test_metrics"]["confusion_matrix"]
assert sum(map(sum, matrix)) == 200
assert len(elements("summary.svg", "title")) == 100
END
expect 'curves of all steps and tests, and a matrix' python3 "$work/pictures.py" "$work"
cp "$work/summary.json" "$work/metrics.json"
run "$plot" "$work/metrics.jsonl" "$work/metrics.json" # two pictures, whose files would have one name
expect_status 0
cp "$work/metrics.svg" "$work/summary.svg"
mv "$work/metrics.confusion.svg" "$work/metrics.svg"
expect 'the curves' test "$(grep -c polyline "$work/summary.svg")" -gt 0
expect 'the matrix, in a file of its own' test "$(grep -c polyline "$work/metrics.svg")" -eq 0
cp "$work/metrics.jsonl" "$work/steps.svg"
run "$plot" "$work/steps.svg"
expect_status 2
expect 'the steps as they were' cmp "$work/metrics.jsonl" "$work/steps.svg"
run "$plot" "$work/summary.json"
expect_status 2
run "$plot" "$work/nowhere.jsonl"
expect_status 2

same_loss() { # same_loss TOLERANCE APPLICATION OPTION…: on 1 and 3 ranks; sets `loss`, that of one
  local tolerance=$1 ranks losses=()
  shift
  for ranks in 1 3; do
    mpi $ranks "$apps/$1" "${@:2}"
    expect_status 0
    losses+=("$(summary final_train_loss)")
  done
  echo "$1 on 1 and 3 ranks: losses ${losses[*]}"
  loss=${losses[0]}
  apart "${losses[1]}" at_most "$tolerance"
}
apart() { # apart LOSS at_most|more_than DISTANCE: from $loss
  expect "a loss $2 $3 from $loss, not $1" \
    awk -v a="$loss" -v b="$1" -v how="$2" -v d="$3" 'BEGIN { near = a != "" && b != "" && (a - b)^2 <= d^2; exit !(near == (how == "at_most")) }'
}

same_loss 1e-4 cifar10_cnn "${options[@]}" --augment --mixup 0.4 --steps 5
mpi 1 "$apps/cifar10_cnn" "${options[@]}" --steps 5
expect_status 0
apart "$(summary final_train_loss)" more_than 1e-3 # without augmentation

# ResNet-18: the same too, as batches are normalised over all ranks. At larger rates roundings grow tenfold a step.
steps=(--data "$work/images" --no-augment --optimizer sgd --learning-rate 0.0005 --schedule constant --global-batch-size 6 --steps 2
  --threads 1 --quiet --summary-json "$work/summary.json")
same_loss 3e-4 cifar10_resnet "${steps[@]}"
mpi 3 "$apps/cifar10_resnet" "${steps[@]}" --no-sync-batch-norm
expect_status 0
apart "$(summary final_train_loss)" more_than 3e-3 # where ranks normalise for themselves

what='a resumption in the second epoch'
mpi 2 "$apps/cifar10_cnn" "${options[@]}" --augment --mixup 0.4 --steps 20 --checkpoint-dir "$work/run" --checkpoint-every 15
expect_status 0
whole=$(summary parameter_hash)
mpi 2 "$apps/cifar10_cnn" "${options[@]}" --augment --mixup 0.4 --steps 20 --resume-from "$work/run/step-15"
expect_status 0
expect 'the second part alone' test "$(summary resumed_step)" -eq 15
expect 'the same parameters' test "$(summary parameter_hash)" = "$whole"

mpi 2 "$apps/cifar10_cnn" --steps 1
expect_status 2
expect_message 'scripts/fetch_cifar.sh 10 FOLDER'
mpi 1 "$apps/cifar10_cnn" --steps 1 --data "$work/images" --save "$work/images/data_batch_1.bin"
expect_status 2
expect_message '--save .*data_batch_1.bin would overwrite an input'
mpi 2 "$apps/cifar10_cnn" --steps 1 --data "$work/nowhere"
expect_status 2
expect_message 'nowhere'
truncate -s -7 "$work/images/data_batch_3.bin"
mpi 2 "$apps/cifar10_cnn" --steps 1 --data "$work/images"
expect_status 2
expect_message 'data_batch_3.bin'
