#!/usr/bin/env bash
# ronda_export: what applications saved becomes ONNX, and what cannot is one message. That runtimes compute the same from it is
# for scripts/check_onnx.sh.
source "$(dirname "$0")/lib.sh"
limit=60
export OMP_NUM_THREADS=1

run "$apps/mnist_mlp" --quiet --steps 20 --hidden 40,30 --save "$work/mlp" --checkpoint-dir "$work/run"
expect_status 0
run "$apps/ronda_export" "$work/mlp" --onnx "$work/mlp.onnx"
if ((status == 2)) && grep -q 'lacks ONNX' "$work/err"; then skip 'this build has no library for ONNX'; fi
expect_status 0
expect 'nothing said' test ! -s "$work/out" -a ! -s "$work/err"
for text in dense3.bias '"application":"mnist_mlp"' 'pixels from 0 to 1' ronda.version; do
  expect "$text in the file" grep -qaF "$text" "$work/mlp.onnx"
done
expect 'as many bytes as the parameters have, and little more' \
  awk -v bytes="$(stat -c %s "$work/mlp.onnx")" 'BEGIN { parameters = 4 * (785 * 40 + 41 * 30 + 31 * 10); exit !(bytes > parameters && bytes < parameters + 4000) }'

# The same from the checkpoint of the same training.
run "$apps/ronda_export" "$work/run" --onnx "$work/again.onnx"
expect_status 0
expect 'the same file' cmp "$work/mlp.onnx" "$work/again.onnx"

for i in {1..40}; do echo "line $i of a text"; done >"$work/text"
run "$apps/char_gpt" --quiet --data "$work/text" --layers 1 --heads 2 --width 16 --context 8 --steps 2 --global-batch-size 4 --save "$work/gpt"
expect_status 0
run "$apps/ronda_export" "$work/gpt" --onnx "$work/gpt.onnx"
expect_status 0
expect 'its operators' grep -qa LayerNormalization "$work/gpt.onnx"

refused() { # refused MESSAGE ARGUMENT…
  refused_alone "$1" ronda_export "${@:2}"
  expect 'no file' test ! -e "$work/none.onnx"
}
head -c 20000 "$work/mlp" >"$work/cut"
sed 's/ronda\.model/ronda.other/' "$work/mlp" >"$work/old"
cp "$work/mlp" "$work/mine"
run "$apps/ronda_export" "$work/mine" --onnx "$work/mine"
expect_status 2
expect_message 'would overwrite an input'
expect 'the model as it was' cmp "$work/mine" "$work/mlp"
refused '"classes" are 10, not 2' "$work/mlp" --onnx "$work/none.onnx" --describe '{"classes": ["a", "b"]}'
refused '--onnx is required' "$work/mlp"
refused 'nowhere: No such file' "$work/nowhere" --onnx "$work/none.onnx"
refused 'no sound safetensors file' "$work/cut" --onnx "$work/none.onnx"
refused 'does not say which .* --describe' "$work/old" --onnx "$work/none.onnx"
refused 'dense4.weight is not there' "$work/mlp" --onnx "$work/none.onnx" --describe '{"hidden": [40, 30, 10]}'
refused 'dense1.weight has shape' "$work/mlp" --onnx "$work/none.onnx" --describe '{"hidden": [41, 30]}'
refused 'width' "$work/gpt" --onnx "$work/none.onnx" --describe '{"heads": 3}'
refused 'nowhere' "$work/mlp" --onnx "$work/nowhere/none.onnx"
