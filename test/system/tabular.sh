#!/usr/bin/env bash
# The regression on a table: what it reaches and says, on 1 to 3 ranks, and what it refuses.
source "$(dirname "$0")/lib.sh"
limit=60

# y = 100 + 20 x1 - 10 x2 + 15 x1 x2, and a little noise; a column that is no number.
awk 'BEGIN {
  srand(7); print "name,x1,y,x2"
  for (i = 0; i < 2000; ++i) {
    x1 = 2 * rand() - 1; x2 = 2 * rand() - 1
    printf "row %d,%.6f,%.6f,%.6f\n", i, x1, 100 + 20 * x1 - 10 * x2 + 15 * x1 * x2 + 0.2 * (rand() - 0.5), x2
  }
}' > "$work/table.csv"

for ranks in 1 2 3; do
  mpi $ranks "$apps/tabular" --data "$work/table.csv" --target y --ignore name --global-batch-size 50 --epochs 15 \
    --threads 1 --summary-json "$work/summary.json"
  expect_status 0
  expect 'no accuracy of a regression' test "$(grep -c accuracy "$work/out")" -eq 0
  expect 'the errors by name' grep -Eq '^test mae [0-9.]+, test mse [0-9.]+, r2 0\.9' "$work/out"
  r2=$(sed -n 's/^test .*, r2 \([0-9.]*\).*/\1/p' "$work/out")
  echo "$ranks ranks: R2 $r2"
  expect 'a good fit' at_least "$r2" 0.99
  # The targets' own unit: their variance is about 180, of which 1 % may be left.
  expect 'an error in the unit of the table' at_least 1.8 "$(summary test_loss)"
  expect 'the metric in the summary' grep -q '"test_mae"' "$work/summary.json"
  expect 'R² of each epoch and of the last test' test "$(grep -c '"r2": 0' "$work/summary.json")" -ge 15
done

# Predictions have the table's units too.
mpi 2 "$apps/tabular" --data "$work/table.csv" --test "$work/table.csv" --target y --ignore name --global-batch-size 50 --epochs 15 \
  --predictions "$work/outputs.safetensors"
expect_status 0
cat >"$work/off.py" <<'END'
import csv, json, struct, sys
with open(sys.argv[1], "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))["outputs"]
    outputs = struct.unpack(f"<{header['shape'][0]}d", file.read())
targets = [float(row["y"]) for row in csv.DictReader(open(sys.argv[2]))]
assert len(outputs) == len(targets)
print(sum((a - b) ** 2 for a, b in zip(outputs, targets)) / len(targets))
END
expect 'predictions near the targets' at_least 1.8 "$(python3 "$work/off.py" "$work/outputs.safetensors" "$work/table.csv")"

# Targets with a large offset, as times have: what is written has the error that the test says.
awk 'BEGIN {
  srand(5); print "x,y"
  for (i = 0; i < 1000; ++i) { x = 2 * rand() - 1; printf "%.6f,%.6f\n", x, 1700000000 + 20 * x }
}' >"$work/offset.csv"
mpi 2 "$apps/tabular" --data "$work/offset.csv" --test "$work/offset.csv" --target y --global-batch-size 50 --epochs 15 --quiet \
  --predictions "$work/outputs.safetensors" --save "$work/offset" --summary-json "$work/summary.json"
expect_status 0
loss=$(summary test_loss)
expect 'a good fit beside a large offset' at_least 1 "$loss"
expect 'predictions beside a large offset' at_least 1 "$(python3 "$work/off.py" "$work/outputs.safetensors" "$work/offset.csv")"
for format in csv json; do
  run "$apps/ronda_predict" "$work/offset" "$work/offset.csv" --format $format
  expect_status 0
  expect "$format with all digits" python3 -c '
import csv, json, sys
lines = open(sys.argv[1]).read().splitlines()
found = [json.loads(line)["prediction"] for line in lines] if lines[0][0] == "{" else [float(row["y"]) for row in csv.DictReader(lines)]
targets = [float(row["y"]) for row in csv.DictReader(open(sys.argv[2]))]
assert len(found) == len(targets)
assert sum((a - b) ** 2 for a, b in zip(found, targets)) / len(targets) < 1' "$work/out" "$work/offset.csv"
done

# A column that does not vary, whose sum is rounded; the test's is another, and predictions stay near.
awk 'BEGIN { srand(3); print "a,c,y"; for (i = 0; i < 200; ++i) { x = rand(); printf "%.6f,0.1,%.6f\n", x, 3 * x } }' >"$work/constant.csv"
sed 's/,0\.1,/,0.2,/' "$work/constant.csv" >"$work/other.csv"
mpi 2 "$apps/tabular" --data "$work/constant.csv" --test "$work/other.csv" --epochs 5 --learning-rate 0.005 --quiet --summary-json "$work/summary.json"
expect_status 0
expect 'a bounded error' at_least 1 "$(summary test_loss)"

# Numbers that differ by less than float32 tells apart; a test with the columns in another order, and one beside them.
awk 'BEGIN { print "t,y"; for (i = 0; i < 300; ++i) printf "%d,%d\n", 1700000000 + i, i }' >"$work/times.csv"
awk -F, '{ print $2 "," $1 ",x" NR }' "$work/times.csv" >"$work/turned.csv"
mpi 1 "$apps/tabular" --data "$work/times.csv" --test "$work/turned.csv" --target y --epochs 20 --learning-rate 0.01 --quiet --summary-json "$work/summary.json"
expect_status 0
expect 'times that are told apart' at_least 75 "$(summary test_loss)" # of 7500
mpi 1 "$apps/tabular" --data "$work/times.csv" --test-split 0 --epochs 1 --quiet
expect_status 0

refused() { # refused MESSAGE OPTION…
  local message=$1
  shift
  mpi 2 "$apps/tabular" "$@"
  expect_status 2
  expect_message "$message"
}
refused "'row 0' in column 'name'" --data "$work/table.csv" --target y
refused "no column 'z'.*x1, y, x2" --data "$work/table.csv" --target z --ignore name
refused '--data is required' --epochs 1
refused '--save .*times.csv would overwrite an input' --data "$work/times.csv" --save "$work/times.csv"
ln "$work/turned.csv" "$work/hard.csv"
refused '--metrics .*hard.csv would overwrite an input' --data "$work/times.csv" --test "$work/turned.csv" --target y --metrics "$work/hard.csv"
refused '--save and --predictions are one file' --data "$work/times.csv" --save "$work/both" --predictions "$work/both"
tail -n 5 "$work/times.csv" >"$work/rows.csv"
head -n 2 "$work/times.csv" >"$work/row.csv"
refused 'expected names of columns, found numbers' --data "$work/rows.csv"
refused 'separates no fields' --data "$work/times.csv" --separator '§'
refused 'has one row' --data "$work/row.csv"
tr , '\t' <"$work/times.csv" >"$work/tabs.csv"
mpi 2 "$apps/tabular" --data "$work/tabs.csv" --separator '\t' --epochs 1 --quiet
expect_status 0
refused 'nowhere.csv' --data "$work/nowhere.csv"
