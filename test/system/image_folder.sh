#!/usr/bin/env bash
# ResNet-50 on folders of pictures: a short training on 1 and 2 ranks, and what is refused.
source "$(dirname "$0")/lib.sh"
limit=100

cat >"$work/pictures.py" <<'END'
import random, struct, sys, zlib
from pathlib import Path
draw = random.Random(3)
def png(path, width, height, colour):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(min(255, c // 2 + draw.randrange(128)) for _ in range(width) for c in colour) for _ in range(height))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
for part, count in (("train", 12), ("val", 4)):
    for name, colour in (("red", (255, 40, 40)), ("blue", (30, 30, 255))):
        for i in range(count):
            png(Path(sys.argv[1]) / part / name / f"{i}.png", 70 + i, 66, colour)
END
python3 "$work/pictures.py" "$work/pictures"

# One step: float32 has three digits of a gradient through so many normalisations and ReLUs, PyTorch's as well (docs/performance.md).
options=(--data "$work/pictures" --size 64 --global-batch-size 8 --optimizer sgd --learning-rate 0.0001 --schedule constant --threads 1
  --quiet --summary-json "$work/summary.json" --sync-batch-norm --save "$work/model")
losses=()
for ranks in 1 2; do
  mpi $ranks "$apps/imagenet_resnet50" "${options[@]}" --steps 1
  if ((status == 2)) && grep -q 'built without' "$work/err"; then skip 'this build has no library for PNG'; fi
  expect_status 0
  expect 'the share of right answers' grep -q '"test_accuracy": [0-9]' "$work/summary.json"
  losses+=("$(summary final_train_loss)")
done
echo "losses ${losses[*]}"
expect 'the same loss on 1 and 2 ranks' awk -v a="${losses[0]}" -v b="${losses[1]}" 'BEGIN { exit !(a > 0 && (a - b)^2 < 1e-7) }'

what='ronda_predict on what was saved'
run "$apps/ronda_predict" "$work/model" "$work/pictures/val/red/"[01].png --format csv --top 2
expect_status 0
expect 'the names of the folders' grep -Eq 'red/0.png,0,[01],(red|blue),[0-9.e-]+,[01],(red|blue)' "$work/out"
expect 'a line of names, and one a picture' test "$(wc -l <"$work/out")" -eq 3

refused() { # refused MESSAGE OPTION…
  local message=$1
  shift
  mpi 2 "$apps/imagenet_resnet50" "$@"
  expect_status 2
  expect_message "$message"
}
refused '--data is required'
refused 'nowhere' --data "$work/nowhere"
refused '--save .*train/model would overwrite an input' --data "$work/pictures" --size 32 --save "$work/pictures/train/model"
head -c 200 "$work/pictures/train/red/5.png" >"$work/short" && mv "$work/short" "$work/pictures/train/red/5.png"
refused '5.png.*; --skip-damaged leaves such files out' --data "$work/pictures" --size 32 --global-batch-size 8 --steps 3
mpi 2 "$apps/imagenet_resnet50" "${options[@]}" --steps 3 --skip-damaged
expect_status 0
expect 'the picture that was left out' grep -q 'warning: damaged pictures were left out: 1, .*train/red/5.png' "$work/err"
cp -r "$work/pictures" "$work/ruins"
for file in "$work"/ruins/train/*/*.png; do : >"$file"; done
refused 'no sample of epoch 1 counts' --data "$work/ruins" --size 32 --global-batch-size 8 --epochs 1 --skip-damaged
rm -r "$work/ruins"
cp -r "$work/pictures" "$work/ruins"
for file in "$work"/ruins/val/*/*.png; do : >"$file"; done
refused 'no sample of the test counts' --data "$work/ruins" --size 32 --global-batch-size 24 --epochs 1 --skip-damaged
rm -r "$work/pictures/val/red"
refused "train has 2 classes and val 1; 'red' is in train alone" --data "$work/pictures" --size 32
