#!/usr/bin/env bash
# ronda_quantize: a saved model with int8 weights takes a quarter of the bytes, ronda_predict says the same with it, and what cannot be
# quantised is one message.
source "$(dirname "$0")/lib.sh"
limit=100
export OMP_NUM_THREADS=1

images=$mnist/t10k-images-idx3-ubyte.gz
gzip -dc "$mnist/t10k-labels-idx1-ubyte.gz" | tail -c +9 | od -An -v -tu1 -w1 | tr -d ' ' >"$work/labels"
accuracy() { # accuracy MODEL: sets `accuracy`, in hundredths of a percent
  run "$apps/ronda_predict" "$1" "$images" --format csv --threads 1
  expect_status 0
  accuracy=$(tail -n +2 "$work/out" | cut -d, -f3 | paste "$work/labels" - | awk '$1 == $2 { ++right } END { print right }')
}

for application in mnist_mlp mnist_cnn; do
  what=$application
  run "$apps/$application" --quiet --steps 200 --threads 1 --save "$work/$application"
  expect_status 0
  run "$apps/ronda_quantize" "$work/$application" "$work/$application.int8" --data "$mnist/train-images-idx3-ubyte.gz" --threads 1
  expect_status 0
  cp "$work/out" "$work/table"
  expect 'a line of each tensor' grep -Eq '^dense1.weight +\([0-9]+, [0-9]+\) +int8 +[0-9]+$' "$work/table"
  expect 'biases in float32' grep -Eq '^dense1.bias +\([0-9]+\) +float32 +[0-9]+$' "$work/table"
  expect 'the speed of both' grep -Eq '^samples a second: float32 [0-9]+, int8 [0-9]+' "$work/table"
  expect 'at most 1/3.5 of the bytes' awk -v before="$(stat -c %s "$work/$application")" -v after="$(stat -c %s "$work/$application.int8")" \
    'BEGIN { exit !(after > 0 && 3.5 * after <= before) }'
  accuracy "$work/$application"
  before=$accuracy
  accuracy "$work/$application.int8"
  echo "$application: $before of 10000 right in float32, $accuracy in int8"
  expect 'at most 30 of 10000 fewer right' test $((accuracy + 30)) -ge "$before"
done

# The same file, whatever there was at its place; the same outputs, however many samples at once.
run "$apps/ronda_quantize" "$work/mnist_mlp" "$work/again" --data "$mnist/train-images-idx3-ubyte.gz" --threads 1 --samples 1000
expect_status 0
expect 'the same file again' cmp "$work/mnist_mlp.int8" "$work/again"
for size in 1 64; do
  run "$apps/ronda_predict" "$work/again" "$images" --format csv --threads 1 --batch-size $size
  expect_status 0
  mv "$work/out" "$work/batch.$size"
done
expect 'equal outputs' cmp "$work/batch.1" "$work/batch.64"

# A model of a table has no classes; of text, an embedding that stays float32.
awk 'BEGIN { srand(7); print "x1,y,x2"; for (i = 0; i < 200; ++i) { a = 2 * rand() - 1; b = rand(); printf "%.6f,%.6f,%.6f\n", a, 100 + 20 * a - 10 * b, b } }' >"$work/table.csv"
run "$apps/tabular" --quiet --data "$work/table.csv" --test "$work/table.csv" --target y --hidden 16 --epochs 5 --threads 1 --save "$work/tabular"
expect_status 0
run "$apps/ronda_quantize" "$work/tabular" "$work/tabular.int8" --data "$work/table.csv" --threads 1
expect_status 0
expect 'how far numbers are apart' grep -q '^predictions differ by at most ' "$work/out"
run "$apps/ronda_predict" "$work/tabular.int8" "$work/table.csv" --format csv
expect_status 0
for i in {1..40}; do echo "line $i of a text"; done >"$work/text"
run "$apps/char_gpt" --quiet --data "$work/text" --layers 1 --heads 2 --width 16 --context 8 --steps 2 --global-batch-size 4 --save "$work/gpt"
expect_status 0
run "$apps/ronda_quantize" "$work/gpt" "$work/gpt.int8" --data "$work/text" --threads 1 --least-agreement 0 # of a model that has learnt nothing
expect_status 0
expect 'a float32 embedding' grep -Eq '^embedding1.weight .* float32 ' "$work/out"
expect 'int8 attention' grep -Eq '^attention1.in_proj_weight .* int8 ' "$work/out"

refused() { # refused MESSAGE TOOL ARGUMENT…
  refused_alone "$@"
  expect 'no file' test ! -e "$work/none"
}

# The weights of a pixel that is always black are a thousand times larger: as int8 all others are 0.
python3 - "$work/mnist_mlp" "$work/coarse" <<'END'
import json, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
length = struct.unpack_from("<Q", data)[0]
weight = json.loads(data[8:8 + length])["dense1.weight"]
rows, columns = weight["shape"]
for row in range(rows): struct.pack_into("<f", data, 8 + length + weight["data_offsets"][0] + 4 * columns * row, 1000.0)
open(sys.argv[2], "wb").write(data)
END
what='a model that int8 spoils'
run "$apps/ronda_quantize" "$work/coarse" "$work/none" --data "$mnist/train-images-idx3-ubyte.gz" --threads 1
expect_status 1
expect_message 'agree to [0-9.]+ % with those of float32, less than 90.0 %: nothing is written'
expect 'no file' test ! -e "$work/none"
run "$apps/ronda_quantize" "$work/coarse" "$work/coarse.int8" --data "$mnist/train-images-idx3-ubyte.gz" --threads 1 --least-agreement 0
expect_status 0
head -c 20000 "$work/mnist_mlp" >"$work/cut"
python3 - "$work/mnist_mlp" "$work/spoiled" <<'END'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
data[-4:] = struct.pack("<f", float("nan"))
open(sys.argv[2], "wb").write(data)
END
refused '--data is required' ronda_quantize "$work/mnist_mlp" "$work/none"
refused 'OUTPUT is required' ronda_quantize "$work/mnist_mlp" --data "$images"
refused 'nowhere: No such file' ronda_quantize "$work/mnist_mlp" "$work/none" --data "$work/nowhere"
refused 'table.csv is nothing that mnist_mlp takes' ronda_quantize "$work/mnist_mlp" "$work/none" --data "$work/table.csv"
refused 'quantised already: .*weight is int8' ronda_quantize "$work/mnist_mlp.int8" "$work/none" --data "$images"
refused 'has a NaN or an infinity' ronda_quantize "$work/spoiled" "$work/none" --data "$images"
refused 'no sound safetensors file' ronda_quantize "$work/cut" "$work/none" --data "$images"
refused 'OUTPUT .* would overwrite an input' ronda_quantize "$work/mnist_mlp" "$work/mnist_mlp" --data "$images"
refused 'nowhere' ronda_quantize "$work/mnist_mlp" "$work/nowhere/none" --data "$images"
refused '--samples' ronda_quantize "$work/mnist_mlp" "$work/none" --data "$images" --samples 0
refused 'dense1.weight has shape' ronda_quantize "$work/mnist_mlp" "$work/none" --data "$images" --describe '{"hidden": [64]}'
refused 'quantised to int8: export the model' ronda_export "$work/mnist_mlp.int8" --onnx "$work/none"
refused 'was it saved by another model' mnist_mlp --quiet --steps 1 --init "$work/mnist_mlp.int8"
