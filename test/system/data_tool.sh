#!/usr/bin/env bash
# ronda_data: finds every damage, makes arrays with the same samples, and shows the images of a training.
source "$(dirname "$0")/lib.sh"
limit=60

data() { # data STATUS ARGUMENT…
  local expected=$1
  shift
  what="ronda_data $*"
  run "$apps/ronda_data" "$@"
  expect_status "$expected"
}

# Pictures: 32 x 40 pixels, of which the middle 28 x 28 are taken where 32 is 8/7 of the size.
cat >"$work/make.py" <<'END'
import struct, sys, zlib
from pathlib import Path
def png(path, value):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes((value, y, x) [c] for x in range(40) for c in range(3)) for y in range(32))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 40, 32, 8, 2, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
for i in range(70):
    png(Path(sys.argv[1]) / "ab"[i % 2] / f"{i:02}.png", 3 * i)
END
python3 "$work/make.py" "$work/pictures"
cat >"$work/read.py" <<'END'
import struct, sys, zlib
from pathlib import Path
def npy(path):  # (type, shape, bytes)
    data = Path(path).read_bytes()
    assert data[:8] == b"\x93NUMPY\1\0"
    length = struct.unpack_from("<H", data, 8)[0]
    assert (10 + length) % 64 == 0 and data[9 + length] == 10
    header = eval(data[10:10 + length])
    assert header["fortran_order"] is False
    return header["descr"], header["shape"], data[10 + length:]
def png(path):  # (height, width, bytes of red, green and blue), of filter types 0 to 4
    data, at, packed = Path(path).read_bytes(), 8, b""
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack_from(">IIBB", data, at + 8)
            assert (depth, colour) == (8, 2)
        if kind == b"IDAT": packed += data[at + 8:at + 8 + length]
        at += 12 + length
    raw, above, pixels = zlib.decompress(packed), bytes(3 * width), []
    for y in range(height):
        kind, row = raw[y * (3 * width + 1)], bytearray(raw[y * (3 * width + 1) + 1:(y + 1) * (3 * width + 1)])
        for i in range(len(row)):
            a, b, c = (row[i - 3] if i > 2 else 0), above[i], (above[i - 3] if i > 2 else 0)
            p = a + b - c
            paeth = a if abs(p - a) <= abs(p - b) and abs(p - a) <= abs(p - c) else b if abs(p - b) <= abs(p - c) else c
            row[i] = (row[i] + (0, a, b, (a + b) // 2, paeth)[kind]) & 255
        above = bytes(row)
        pixels.append(above)
    return height, width, pixels
END
run "$apps/ronda_data" check images "$work/pictures"
if grep -q 'lacks PNG' "$work/out" "$work/err"; then skip 'this build has no library for PNG'; fi
expect_status 0
expect 'how many there are' grep -q '70 samples, all sound' "$work/out"
echo RIFF >"$work/pictures/a/x.webp"
data 0 check images "$work/pictures"
expect 'what is left out' grep -q '70 samples, all sound; not read are 1 .webp in' "$work/out"
rm "$work/pictures/a/x.webp"
data 0 convert images "$work/pictures" "$work/arrays" --size 28
expect 'the middle of each picture, as bytes, and its class' env PYTHONPATH="$work" python3 -c '
import sys; from read import npy
kind, shape, values = npy(sys.argv[1] + "/input.npy")
assert (kind, shape) == ("|u1", (70, 28, 28, 3))
image = [values[2352 * n:2352 * (n + 1)] for n in range(70)]
assert all(image[n] == bytes((6 * n if n < 35 else 6 * n - 207, y + 2, x + 6)[c] for y in range(28) for x in range(28) for c in range(3)) for n in range(70))
kind, shape, values = npy(sys.argv[1] + "/target.npy")
assert (kind, shape) == ("<i4", (70,)) and values == bytes(4 * 35) + bytes((1, 0, 0, 0)) * 35' "$work/arrays"

# MNIST: what there is on disk, byte by byte; shown as it is read for a test, and changed by nothing.
data 0 check mnist "$mnist"
data 0 convert mnist "$mnist" "$work/digits" --part test
expect 'the bytes of the images' cmp <(tail -c 7840000 "$work/digits/input.npy") <(gzip -dc "$mnist/t10k-images-idx3-ubyte.gz" | tail -c 7840000)
data 0 show mnist "$mnist" "$work/sheet.png" --part test --first 3 --count 5 --columns 2
expect 'digits in three rows of two, the sixth place black' env PYTHONPATH="$work" python3 -c '
import gzip, sys; from read import png
height, width, rows = png(sys.argv[1])
digits = gzip.open(sys.argv[2]).read()[16:]
assert (height, width) == (3 * 29 - 1, 2 * 29 - 1)
for n in range(6):
    for y in range(28):
        shown = rows[n // 2 * 29 + y][3 * 29 * (n % 2):3 * (29 * (n % 2) + 28)]
        grey = digits[784 * (n + 3) + 28 * y:784 * (n + 3) + 28 * (y + 1)] if n < 5 else bytes(28)
        assert shown == bytes(g for g in grey for _ in range(3)), (n, y)' "$work/sheet.png" "$mnist/t10k-images-idx3-ubyte.gz"

# Random changes: the same for a seed and an epoch, others for another; none with --no-augment or in epoch 0.
show() { data 0 show images "$work/pictures" "$work/$1.png" --count 9 --columns 3 --size 28 "${@:2}"; }
show first
show again
show epoch2 --epoch 2
show seed2 --seed 2
show plain --no-augment
show test --epoch 0
expect 'the same sheet' cmp "$work/first.png" "$work/again.png"
for other in epoch2 seed2 plain; do
  expect "another sheet of $other" test "$(cmp -s "$work/first.png" "$work/$other.png"; echo $?)" -eq 1
done
expect 'test images unchanged' cmp "$work/plain.png" "$work/test.png"

# How fast samples are read: at least a batch of them, by any number of threads; damage is told as ever.
data 0 time images "$work/pictures" --size 28 --readers 3 --batch-size 7 --seconds 0.1 --json
expect 'samples, seconds and their ratio' python3 -c '
import json, sys
line = json.load(open(sys.argv[1]))
assert line["batch_size"] == 7 and line["samples"] >= 7 and line["seconds"] >= 0.1, line
assert abs(line["samples_per_second"] * line["seconds"] - line["samples"]) < 1e-6 * line["samples"], line' "$work/out"
data 0 time mnist "$mnist" --seconds 0.1
expect 'a line' grep -Eq ': [0-9]+ samples/s, [0-9]+ samples in random order, 64 a batch$' "$work/out"
data 2 time text "$work/pictures"
expect_message 'text cannot be timed'

# A table written by pandas has an index, which is not an input.
printf ',a,y\n0,5,6\n1,7,8\n' >"$work/pandas.csv"
data 0 check csv "$work/pandas.csv"
expect 'a remark' grep -q '2 samples, all sound; the first column of the table is left out' "$work/out"
data 0 convert csv "$work/pandas.csv" "$work/indexed"
expect 'one input' grep -q 'input (1)' "$work/out"

# A table, to folders and HDF5.
printf 'a,y,name,b\n1,2,x,3\n4,5.5,z,6\n' >"$work/table.csv"
data 0 convert csv "$work/table.csv" "$work/numbers" --target y --ignore name
expect 'inputs and targets' env PYTHONPATH="$work" python3 -c '
import struct, sys; from read import npy
assert npy(sys.argv[1] + "/input.npy") == ("<f4", (2, 2), struct.pack("<4f", 1, 3, 4, 6))
assert npy(sys.argv[1] + "/target.npy") == ("<f4", (2, 1), struct.pack("<2f", 2, 5.5))' "$work/numbers"
what='HDF5'
run "$apps/ronda_data" convert csv "$work/table.csv" "$work/table.h5" --ignore name
if ((status == 2)); then expect_message 'lacks HDF5'; else
  expect_status 0
  expect 'an HDF5 file, and no part of one' test "$(cd "$work" && echo table.h5*)" = table.h5
fi

# Damage: each file and line by itself.
head -c 150 "$work/pictures/a/04.png" >"$work/short" && cp "$work/short" "$work/pictures/a/04.png"
echo text >"$work/pictures/b/69.png"
data 2 check images "$work/pictures"
expect_message 'damaged in 2 places'
expect 'both pictures' test "$(grep -Ec 'a/04.png, sample 2: |b/69.png, sample 69: expected a JPEG' "$work/out")" -eq 2
data 2 convert images "$work/pictures" "$work/arrays2"
expect_message '04.png'
expect 'no part of an array' test -z "$(ls "$work/arrays2")"
printf 'a,b\n1,2\nx,2\n1\n3,4\n' >"$work/bad.csv"
data 2 check csv "$work/bad.csv"
expect 'both lines' test "$(grep -Ec 'line 3: .x. in column|line 4: expected 2 fields' "$work/out")" -eq 2
printf 'label\ttext\n0\tfine\nnone\n-1\tx\n' >"$work/bad.tsv"
data 2 check text "$work/bad.tsv"
expect 'both texts' test "$(grep -Ec 'line 3: .*without a tab|line 4: expected a label' "$work/out")" -eq 2
mkdir "$work/cifar"
for name in data_batch_{1..4} test_batch; do head -c $((2 * 3073)) /dev/zero >"$work/cifar/$name.bin"; done
printf '\012' | dd of="$work/cifar/data_batch_2.bin" bs=1 seek=3073 conv=notrunc status=none
truncate -s +5 "$work/cifar/test_batch.bin"
data 2 check cifar10 "$work/cifar"
expect 'record, missing file and rest' test "$(grep -Ec 'batch_2.bin, record 1: .* found 10|no .*data_batch_5|test_batch.bin, record 2: .* found 5' "$work/out")" -eq 3
mkdir "$work/mnist" && cp "$mnist"/*.gz "$work/mnist"
head -c 1000 "$mnist/train-images-idx3-ubyte.gz" >"$work/mnist/train-images-idx3-ubyte.gz"
rm "$work/mnist/t10k-labels-idx1-ubyte.gz"
data 2 check mnist "$work/mnist"
expect 'both files' test "$(grep -Ec 'train-images|t10k-labels' "$work/out")" -eq 2

for arguments in "check pictures $work" "show csv $work/table.csv $work/x.png" "convert text $work/bad.tsv $work/x" "show mnist $mnist $work/x.png --first 60000"; do
  # shellcheck disable=SC2086
  data 2 $arguments
done

# Nothing is written over what is read, and what is unknown is named.
printf 'a,b\n1,2\n3,4\n' >"$work/own.csv"
data 2 convert csv "$work/own.csv" "$work/own.csv"
expect_message 'TO .*own.csv would overwrite an input'
first=$(find "$work/pictures" -name '*.png' | sort | head -1)
data 2 show images "$work/pictures" "$first"
expect_message 'would overwrite an input'
data 2 show images "$work/pictures" "$work/sheet.png" --colums 3
expect_message 'no option --colums; did you mean --columns'
