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
    outputs = struct.unpack(f"<{header['shape'][0]}f", file.read())
targets = [float(row["y"]) for row in csv.DictReader(open(sys.argv[2]))]
assert len(outputs) == len(targets)
print(sum((a - b) ** 2 for a, b in zip(outputs, targets)) / len(targets))
END
expect 'predictions near the targets' at_least 1.8 "$(python3 "$work/off.py" "$work/outputs.safetensors" "$work/table.csv")"

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
refused 'nowhere.csv' --data "$work/nowhere.csv"
