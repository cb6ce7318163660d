#!/usr/bin/env bash
# ronda_predict on what the applications saved: it predicts what the training predicted, from files of all kinds, and says
# what is wrong with others.
source "$(dirname "$0")/lib.sh"
limit=60
export OMP_NUM_THREADS=1

# values NAME FILE: a column of the CSV, without its name
values() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) n = i; next } { print $n }' "$2"; }

# MNIST: accuracy as the training saw it, from the file and from the checkpoint; 300 of its images as pictures.
run "$apps/mnist_mlp" --quiet --steps 300 --hidden 40,30 --save "$work/mlp" --checkpoint-dir "$work/run" --summary-json "$work/summary.json"
expect_status 0
gzip -dc "$mnist/t10k-labels-idx1-ubyte.gz" | tail -c +9 | od -An -v -tu1 -w1 | tr -d ' ' >"$work/labels"
for model in "$work/mlp" "$work/run"; do
  run "$apps/ronda_predict" "$model" "$mnist/t10k-images-idx3-ubyte.gz" --format csv
  expect_status 0
  mv "$work/out" "$work/idx.csv"
  accuracy=$(paste "$work/labels" <(values label "$work/idx.csv") | awk '$1 == $2 { ++right } END { print right / NR }')
  expect 'the accuracy of the training' awk "BEGIN { d = $accuracy - $(summary test_accuracy); exit !(NR == 0 && d * d < 1e-8) }"
done
for i in 0 1 2; do
  { printf 'P5\n# a digit\n28 28\n255\n'; gzip -dc "$mnist/t10k-images-idx3-ubyte.gz" | tail -c +$((17 + 784 * i)) | head -c 784; } >"$work/$i.pgm"
done
run "$apps/ronda_predict" "$work/mlp" "$work"/[012].pgm --format csv --batch-size 2
expect_status 0
short() { awk -F, '{ printf "%s %s %.5f\n", $3, $4, $5 }'; } # batches of other sizes round differently
expect 'of a picture what is said of the same image in an IDX file' diff <(short <"$work/out") <(head -n 4 "$work/idx.csv" | short)
run "$apps/ronda_predict" "$work/mlp" "$work/0.pgm" --top 3
expect_status 0
expect 'an object of JSON' python3 -c '
import json, sys
line = json.load(open(sys.argv[1]))
assert line["file"].endswith("/0.pgm") and line["sample"] == 0 and len(line["top"]) == 3
assert line["top"][0] == {key: line[key] for key in ("label", "class", "probability")}
assert line["class"] == str(line["label"]) and 0.1 < line["probability"] <= 1
shares = [each["probability"] for each in line["top"]]
assert shares == sorted(shares, reverse=True) and sum(shares) <= 1.00001' "$work/out"

# An old file, which says nothing: described by hand.
run "$apps/ronda_checkpoint" export "$work/exported" "$work/run"
expect 'an export keeps the description' grep -qa mnist_mlp "$work/exported"
sed 's/ronda\.model/ronda.other/' "$work/mlp" >"$work/old"
run "$apps/ronda_predict" "$work/old" "$work/0.pgm"
expect_status 2
expect_message 'does not say which .* --describe'
run "$apps/ronda_predict" "$work/old" "$work/0.pgm" --describe '{"application": "mnist_mlp", "hidden": [40, 30]}'
expect_status 0
run "$apps/ronda_predict" "$work/old" "$work/0.pgm" --describe '{"application": "mnist_mlp"}'
expect_status 2
expect_message 'has no dense3.weight'

# A table, in its own units, with the columns in another order and another one beside them.
awk 'BEGIN {
  srand(7); print "name,x1,y,x2"
  for (i = 0; i < 400; ++i) { x1 = 2 * rand() - 1; x2 = rand(); printf "row %d,%.6f,%.6f,%.6f\n", i, x1, 100 + 20 * x1 - 10 * x2, x2 }
}' >"$work/table.csv"
run "$apps/tabular" --quiet --data "$work/table.csv" --test "$work/table.csv" --target y --ignore name --hidden 16 --epochs 20 --threads 1 \
  --save "$work/table" --predictions "$work/outputs"
expect_status 0
awk -F, '{ print $4 "," $2 ",\"" $1 "\"" }' "$work/table.csv" >"$work/turned.csv"
run "$apps/ronda_predict" "$work/table" "$work/turned.csv" --format csv
expect_status 0
expect 'the predictions of the training' python3 -c '
import csv, struct, sys
data = open(sys.argv[1], "rb").read()
trained = [x for (x,) in struct.iter_unpack("<d", data[8 + struct.unpack_from("<Q", data)[0]:])]
rows = list(csv.DictReader(open(sys.argv[2])))
assert len(rows) == len(trained) == 400 and rows[7]["sample"] == "7"
assert max(abs(float(row["y"]) - x) for row, x in zip(rows, trained)) < 1e-3' "$work/outputs" "$work/out"
cut -d, -f1 "$work/turned.csv" >"$work/narrow.csv"

# Texts, also from standard input.
run "$apps/text_classifier" --quiet --optimizer adam --learning-rate 0.005 --steps 300 --tokens 4096 --threads 1 --save "$work/text"
expect_status 0
printf 'a wonderful, moving film\n\ndull, stupid and awful\n' >"$work/lines"
what='texts from standard input'
"$apps/ronda_predict" "$work/text" - --format csv <"$work/lines" >"$work/out" 2>"$work/err"
expect 'what people think of these texts' test "$(values label "$work/out" | tr '\n' ' ' | sed 's/ . / * /')" = '1 * 0 '

# Pipes, whatever they are called: no line is lost.
for i in {1..2000}; do echo "text number $i of many"; done >"$work/many"
run "$apps/ronda_predict" "$work/text" "$work/many" --format csv
expect_status 0
values label "$work/out" >"$work/labels_of_many"
run "$apps/ronda_predict" "$work/text" <(cat "$work/many") --format csv
expect_status 0
expect 'all lines of a pipe' diff <(values label "$work/out") "$work/labels_of_many"
what='texts from /dev/stdin'
cat "$work/many" | "$apps/ronda_predict" "$work/text" /dev/stdin --format csv >"$work/out" 2>"$work/err"
expect 'all lines of the standard input' diff <(values label "$work/out") "$work/labels_of_many"

# Images of another size.
python3 - "$work/small" <<'END'
import gzip, struct, sys
from pathlib import Path
folder = Path(sys.argv[1])
folder.mkdir()
for part, count in (("train", 64), ("t10k", 16)):
    (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, 20, 20) + bytes(i * 7 % 256 for i in range(count * 400)))
    (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + bytes(i % 10 for i in range(count)))
END
run "$apps/mnist_mlp" --quiet --data "$work/small" --steps 3 --global-batch-size 16 --save "$work/mlp20"
expect_status 0
run "$apps/ronda_predict" "$work/mlp20" "$work/small/t10k-images-idx3-ubyte" --format csv
expect_status 0
expect 'a line of names, and one an image' test "$(wc -l <"$work/out")" -eq 17

# The byte behind each line: the same of a line that is longer than what is read at once, and other than nothing of an empty one.
for i in {1..300}; do echo "line $((i * 7 % 10)): the cat saw $((i * 3 % 11)) boats."; done >"$work/lines"
run "$apps/char_gpt" --quiet --data "$work/lines" --layers 1 --heads 2 --width 32 --context 12 --epochs 20 --learning-rate 0.003 --threads 1 \
  --global-batch-size 12 --save "$work/gpt"
expect_status 0
printf 'line 3: the c\n3: the c\n\nthe cat s\n' >"$work/begun"
run "$apps/ronda_predict" "$work/gpt" "$work/begun" --format csv --top 2
expect_status 0
expect 'the letters that follow' test "$(values class "$work/out" | tr '\n' ' ')" = 'a a l a '
expect 'labels are bytes' test "$(values label "$work/out" | head -1)" -eq 97

refused() { refused_alone "$1" ronda_predict "${@:2}"; } # refused MESSAGE ARGUMENT…
head -c 500 "$work/0.pgm" >"$work/cut.pgm"
head -c 20000 "$work/mlp" >"$work/cut"
mkdir "$work/empty"
refused 'cut.pgm: expected 784 bytes of pixels, found' "$work/mlp" "$work/0.pgm" "$work/cut.pgm"
refused 'table.csv is nothing that mnist_mlp takes' "$work/mlp" "$work/table.csv"
refused 'nowhere: No such file' "$work/mlp" "$work/nowhere"
refused 'labels-idx1.*expected magic number 2051' "$work/mlp" "$mnist/t10k-labels-idx1-ubyte.gz"
refused "no column 'x1'" "$work/table" "$work/narrow.csv"
refused 'no sound safetensors file' "$work/cut" "$work/0.pgm"
refused 'no whole checkpoint' "$work/empty" "$work/0.pgm"
refused 'no object of JSON' "$work/mlp" "$work/0.pgm" --describe mnist_mlp
refused "'resnet'" "$work/mlp" "$work/0.pgm" --describe '{"application": "resnet"}'
refused '"hidden" is from 1' "$work/mlp" "$work/0.pgm" --describe '{"hidden": [0]}'
refused '"hidden" is' "$work/mlp" "$work/0.pgm" --describe '{"hidden": "forty"}'
refused '"hidden" is a whole number' "$work/mlp" "$work/0.pgm" --describe '{"hidden": [64.5]}'
refused '"classes" are 10, not 2' "$work/mlp" "$work/0.pgm" --describe '{"classes": ["a", "b"]}'
refused '"classes" are 10, not 2' "$work/mlp" "$work/0.pgm" --describe '{"classes": 2}'
refused '"classes" names none' "$work/mlp" "$work/0.pgm" --describe '{"classes": []}'
refused 'no model has "clases"' "$work/mlp" "$work/0.pgm" --describe '{"clases": 10}'
refused 'is a pipe' "$work/mlp" <(cat "$work/0.pgm")
refused 'FILES is required' "$work/mlp"

run "$apps/ronda_predict" "$work/mlp" "$work/0.pgm" --format xml
expect_status 2
expect_message "'xml' is not a --format: expected json or csv"
