#!/usr/bin/env bash
# Missing, damaged and foreign files: one message that names the file, status 2, alone and on two ranks, within 10 s.
source "$(dirname "$0")/lib.sh"

# data NAME: a folder like share/mnist, whose files are links, for one of them to be spoilt.
data() {
  mkdir "$work/$1"
  ln -s "$mnist"/*.gz "$work/$1"
  echo "$work/$1"
}
# spoil FOLDER FILE COMMAND…: the file becomes what the command makes of it.
spoil() {
  local file=$1/$2
  shift 2
  "$@" <"$file" >"$work/spoilt"
  rm "$file"
  mv "$work/spoilt" "$file"
}
bytes() { printf "$(printf '\\x%s' "$@")"; } # bytes HH…: these bytes
labels=train-labels-idx1-ubyte images=train-images-idx3-ubyte

refused "$work/nowhere" mnist_softmax --data "$work/nowhere"
folder=$(data without)
rm "$folder/$images.gz"
refused "$images" mnist_softmax --data "$folder"

folder=$(data truncated)
spoil "$folder" $images.gz head -c 1000000
refused "$images" mnist_softmax --data "$folder"

folder=$(data truncated_raw)
spoil "$folder" $labels.gz gzip -dc
mv "$folder/$labels.gz" "$folder/$labels"
spoil "$folder" $labels head -c 30000
refused "$labels" mnist_softmax --data "$folder"

folder=$(data corrupted) # one byte in the middle is another
corrupt() { cat >"$work/whole"; head -c 15000 "$work/whole"; bytes 00 ff 00 ff; tail -c +15005 "$work/whole"; }
spoil "$folder" $labels.gz corrupt
refused "$labels" mnist_softmax --data "$folder"

folder=$(data magic)
bytes 00 00 09 01 >"$work/four"
magic() { cat "$work/four" <(gzip -dc | tail -c +5) | gzip -1; }
spoil "$folder" $labels.gz magic
refused "$labels" mnist_softmax --data "$folder"

folder=$(data fewer)
fewer() { bytes 00 00 08 01 00 00 ea 5f; gzip -dc | tail -c +10; } # 59999 labels
spoil "$folder" $labels.gz fewer
mv "$folder/$labels.gz" "$folder/$labels"
refused '59999' mnist_softmax --data "$folder"

folder=$(data range)
range() { bytes 00 00 08 01 00 00 ea 60 0a; gzip -dc | tail -c +10; } # the first label is 10
spoil "$folder" $labels.gz range
mv "$folder/$labels.gz" "$folder/$labels"
refused 'label' mnist_softmax --data "$folder"

few_images

# Parameters.
head -c 4096 "$mnist/$images.gz" >"$work/garbage"
mpi 1 "$apps/mnist_softmax" --quiet --steps 1 --save "$work/softmax.safetensors"
mpi 1 "$apps/mnist_mlp" --quiet --steps 1 --save "$work/mlp.safetensors"
head -c 20000 "$work/softmax.safetensors" >"$work/truncated.safetensors"
refused "$work/none" mnist_softmax --init "$work/none"
refused "$work/garbage" mnist_softmax --init "$work/garbage"
refused "$work/truncated" mnist_softmax --init "$work/truncated.safetensors"
refused 'dense2' mnist_softmax --init "$work/mlp.safetensors"
refused 'dense' mnist_mlp --init "$work/softmax.safetensors"
refused 'shape' mnist_mlp --hidden 64 --init "$work/mlp.safetensors"
refused "$work" mnist_softmax --init "$work"

# Plans.
for ranks in 1 2; do mpi $ranks "$apps/mnist_softmax" --quiet --steps 1 --plan "$work/plan$ranks.json"; done
head -c 100 "$work/plan1.json" >"$work/half.json"
refused "$work/garbage" mnist_softmax --plan "$work/garbage"
refused "$work/half.json" mnist_softmax --plan "$work/half.json"
refused "$work" mnist_softmax --plan "$work"
for ranks in 1 2; do # each of its own ranks, but another model
  mpi $ranks "$apps/mnist_mlp" --steps 1 --plan "$work/plan$ranks.json"
  expect_status 2
  expect_message 'another model'
done
refused 'another set-up' mnist_softmax --threads 7 --plan "$work/plan1.json"

# What cannot be written is said before training, not after.
for option in --save --summary-json --metrics --predictions; do
  refused "$work/none/file" mnist_softmax $option "$work/none/file"
done
refused "$work" mnist_softmax --save "$work"

# Nothing overwrites the data, by any path.
cp -rL "$few" "$work/own"
ln -s "$work/own" "$work/linked"
for application in mnist_softmax mnist_mlp mnist_cnn mnist_resnet; do
  refused "--save .*$images would overwrite an input" $application --data "$work/own" --save "$work/linked/$images"
done
for option in --metrics --summary-json --predictions --plan --tensorboard --checkpoint-dir; do
  refused "$option .* would overwrite an input" mnist_softmax --data "$work/own" $option "$work/own/$images"
done
wait
expect 'the data as it was' diff -r "$few" "$work/own"

# If one file cannot be written (full disk, limit of file size), the others still are.
mpi 2 "$apps/mnist_softmax" --quiet --steps 1 --predictions /dev/full --save "$work/saved" --summary-json "$work/summary.json"
expect_status 1
expect_message 'the training is done, but cannot write /dev/full: No space'
expect 'the model' test -s "$work/saved"
expect 'the summary' test -s "$work/summary.json"
rm "$work/summary.json"
mkdir "$work/limited"
for ranks in 1 2; do
  mpi $ranks bash -c 'ulimit -f 8000; exec "$@"' limited "$apps/mnist_mlp" --quiet --data "$few" --hidden 4096 --steps 1 --save "$work/limited/model" --summary-json "$work/limited/summary.json"
  expect_status 1
  expect_message 'cannot write .*model: File too large'
  expect 'the summary alone' test "$(ls "$work/limited")" = summary.json
done

# Configuration.
echo 'batch-size = ' >"$work/damaged.toml"
echo 'batch-sice = 100' >"$work/unknown.toml"
refused 'none.toml' mnist_softmax --steps 1 --config "$work/none.toml"
refused 'batch-size|damaged.toml' mnist_softmax --steps 1 --config "$work/damaged.toml"
refused 'batch-sice' mnist_softmax --steps 1 --config "$work/unknown.toml"
refused 'config|garbage' mnist_softmax --steps 1 --config "$work/garbage"
