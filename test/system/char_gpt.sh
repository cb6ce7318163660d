#!/usr/bin/env bash
# The language model of bytes: that it learns, that any number of ranks trains the same and goes on to the bit, what it writes,
# and what it refuses.
source "$(dirname "$0")/lib.sh"
parameter_distance=${2:?usage: $0 APPS PARAMETER_DISTANCE}
limit=60

text=$work/text
for i in {1..300}; do echo "line $((i * 7 % 10)): the cat saw $((i * 3 % 11)) boats."; done >"$text"
small=(--data "$text" --layers 2 --heads 2 --width 32 --context 24 --global-batch-size 12 --threads 1)

# Dropout is of samples, whoever computes them.
for ranks in 1 2 3 4; do
  trained $ranks char_gpt "${small[@]}" --dropout 0.1 --steps 5 --save "$work/of$ranks"
  distance=$("$parameter_distance" "$work/of1" "$work/of$ranks") || fail 'no distance'
  echo "1 and $ranks ranks differ by $distance"
  expect "parameters as of one rank" at_least 1e-4 "${distance:-1}"
done

# A training that goes on from a checkpoint is the training that did not end, to the bit.
trained 2 char_gpt "${small[@]}" --dropout 0.1 --steps 8 --checkpoint-dir "$work/run" --checkpoint-every 4
whole=$(summary parameter_hash)
trained 2 char_gpt "${small[@]}" --dropout 0.1 --steps 8 --resume-from "$work/run/step-4"
expect_summary resumed_step 4
expect_summary parameter_hash "$whole"

# It learns lines that are nearly the same, and writes one; the same text on one rank and on two.
for ranks in 1 2; do
  trained $ranks char_gpt "${small[@]}" --epochs 20 --learning-rate 0.003 --sample 60 --temperature 0.5 --prompt "line 3: the"
  cp "$work/out" "$work/text$ranks"
  echo "$ranks ranks: $(summary bits_per_byte) bits a byte; $(<"$work/out")"
  expect 'less than half a bit a byte' at_least 0.5 "$(summary bits_per_byte)"
  expect 'the prompt and a line like the others' grep -q '^line 3: the cat saw' "$work/out"
  expect 'as many bytes as asked for' test "$(wc -c <"$work/out")" -ge $((11 + 60))
done

# Ranks that share one copy of the parameters and of their average look at it together.
trained 2 char_gpt "${small[@]}" --steps 4 --strategy sharded --one-copy --ema-decay 0.9 --sample 20

refused '--width 30 is no multiple of --heads 4' char_gpt --data "$text" --width 30 --heads 4
refused 'nowhere' char_gpt --data "$work/nowhere"
refused '--save .* would overwrite an input' char_gpt --data "$text" --save "$text"
refused 'at least the .* bytes of a window of 100000' char_gpt --data "$text" --context 100000
refused '--prompt' char_gpt --data "$text" --prompt ''
refused '--dropout' char_gpt --data "$text" --dropout 1
