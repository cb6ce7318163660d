#!/usr/bin/env bash
# Options that cannot work: one message that names the option, status 2, alone and on two ranks, within 10 s. Of those that
# the command line itself refuses some: test/apps has them all.
source "$(dirname "$0")/lib.sh"
few_images

refused '--no-such-option' mnist_softmax --no-such-option
refused '--batch-size' mnist_softmax --batch-size 0
refused '--global-batch-size' mnist_softmax --batch-size 8 --global-batch-size 16
refused 'sgd, momentum, nesterov, adam' mnist_softmax --optimizer adamant
refused 'no meaning for --optimizer sgd' mnist_softmax --optimizer sgd --momentum 0.9
refused 'no meaning for --optimizer nesterov' mnist_softmax --beta1 0.9
refused 'constant, step, cosine, polynomial' mnist_softmax --schedule sometimes
refused "'nccl' is for ranks on GPUs, .*--device cuda" mnist_softmax --allreduce nccl --device cpu
refused "'staged' is for ranks on GPUs, .*--device cuda" mnist_softmax --allreduce staged --device cpu
refused '--device cuda: .*(no CUDA|no NVIDIA driver|GPU)' mnist_softmax --device cuda
refused '--device' mnist_softmax --device abacus
refused 'float32, tf32, mixed_bfloat16 or mixed_float16' mnist_softmax --dtype float16
refused '--nondeterministic is for GPUs' mnist_softmax --nondeterministic
refused '--exact promises equal bits' mnist_softmax --device cuda --nondeterministic --exact --checkpoint-dir "$work/checkpoints"
refused '--exact has no meaning without --checkpoint-dir or --resume-from' mnist_softmax --exact
refused 'an embedding with --whole-gradients' text_classifier --optimizer lamb
ONEDNN_MAX_CPU_ISA=AVX2 refused '--dtype mixed_bfloat16: .*(DNNL_MAX_CPU_ISA|no instructions).*--emulate-dtype' mnist_softmax --dtype mixed_bfloat16
refused '--reduce-dtype bfloat16 does not fit --dtype float32' mnist_softmax --reduce-dtype bfloat16
refused '--emulate-dtype is for --dtype mixed_bfloat16' mnist_softmax --emulate-dtype
for dtype in tf32 mixed_float16; do refused "--dtype $dtype is for GPUs, with --device cuda" mnist_softmax --dtype $dtype; done
refused '--prune is a share' mnist_softmax --prune 90
refused '--prune-only.*no parameter .conv1.*dense1.weight' mnist_softmax --prune 0.5 --prune-only conv1
refused '--keep-best .*--prune' mnist_softmax --prune 0.5 --keep-best
for option in '--prune-begin 0.2' '--prune-end 0.5' '--prune-only dense1'; do
  refused "${option% *} has no meaning without --prune" mnist_softmax $option
done
refused '--reduce-rate-factor has no meaning without --reduce-rate-after' mnist_softmax --reduce-rate-factor 0.5
refused '--least-improvement has no meaning without --early-stopping, --keep-best or' mnist_softmax --least-improvement 0.5
refused '--log-every often: expected a number of steps' mnist_softmax --log-every often
refused '--keep has no meaning without --checkpoint-dir' mnist_softmax --keep 2
refused '--on-divergence has no meaning without --audit-every' mnist_softmax --on-divergence rollback
refused '--steps-in-flight has no meaning for --device cpu' mnist_softmax --steps-in-flight 2 --device cpu
refused "--allow-changes: 'sed' is not the name of an option" mnist_softmax --allow-changes sed
refused '--one-copy is for float32|one copy .*--one-copy.* is for float32' mnist_softmax --strategy sharded --one-copy --dtype mixed_bfloat16 --emulate-dtype
refused '--pipeline: it is at least 1' mnist_softmax --strategy pipeline --pipeline 0
refused '--split: it is at least 1' mnist_softmax --strategy split --split 0
printf 'steps = 1\n' >"$work/few.toml" && head -c 100 /dev/zero >"$work/model"
refused '--save .*few.toml would overwrite an input' mnist_softmax --config "$work/few.toml" --save "$work/few.toml"
refused '--predictions .*model would overwrite an input' mnist_softmax --init "$work/model" --predictions "$work/model"
refused '(--summary-json and --plan|--plan and --summary-json) are one file' mnist_softmax --plan "$work/p" --summary-json "$work/p"
refused '--memory-limit' mnist_softmax --memory-limit 1K
refused "'shared' is not a strategy: --strategy is mirrored, sharded, .*pipeline or split" mnist_softmax --strategy shared
refused 'optimizer lamb .*--strategy sharded .*take --strategy mirrored' mnist_softmax --strategy sharded --optimizer lamb
refused '--one-copy has no meaning for --strategy mirrored: it is for sharded' mnist_softmax --one-copy
refused '--outer-rate and --outer-momentum are for --outer-optimizer nesterov' mnist_softmax --strategy local_sgd --outer-rate 0.5
refused '--fragments is from 1 to --synchronise-every' mnist_softmax --strategy local_sgd --synchronise-every 5 --fragments 6
refused '--synchronise-every is at least 1' mnist_softmax --strategy local_sgd --synchronise-every 0
refused '--synchronise-every .*--strategy mirrored: it is for local_sgd' mnist_softmax --synchronise-every 5
refused '--fragment-delay has no meaning for --fragments 1' mnist_softmax --strategy local_sgd --fragment-delay 5
refused '--compression is of gradients.*--delta-compression' mnist_softmax --strategy local_sgd --compression int8
refused '--audit-every would find nothing: with --strategy local_sgd' mnist_softmax --strategy local_sgd --audit-every 5
refused '--servers is at least 1' mnist_softmax --strategy parameter_server --servers 0
refused '--servers 2 of [12] ranks?: no rank is left as a worker' mnist_softmax --strategy parameter_server --servers 2
refused '--servers has no meaning with --servers-beside' mnist_softmax --strategy parameter_server --servers 1 --servers-beside
refused '/no/such.json' mnist_softmax --strategy parameter_server --cluster /no/such.json
refused '--servers .*--strategy mirrored: it is for parameter_server' mnist_softmax --servers 1
refused '--compression auto chooses for an allreduce.*--strategy parameter_server' mnist_softmax --strategy parameter_server --compression auto
refused '--allreduce .*--strategy parameter_server' mnist_softmax --strategy parameter_server --allreduce ring
refused '--shares measured .*--strategy local_sgd' mnist_softmax --strategy local_sgd --shares measured --accumulate 4
refused '--shares measured .*--strategy parameter_server' mnist_softmax --strategy parameter_server --shares measured --accumulate 4
refused '--audit-every would find nothing: with --strategy parameter_server' mnist_softmax --strategy parameter_server --audit-every 5
refused '--pipeline .*--strategy mirrored: it is for pipeline' mnist_softmax --pipeline 2
refused '--stages .*--strategy mirrored: it is for pipeline' mnist_mlp --stages dense2
refused 'cannot be pipelines of 3 stages .--pipeline.' mnist_mlp --strategy pipeline --pipeline 3
refused '--stages makes 3 stages, and --pipeline says 2' mnist_mlp --strategy pipeline --pipeline 2 --stages dense2,dense3
refused '--shares measured .*--strategy pipeline' mnist_mlp --strategy pipeline --shares measured --accumulate 4
refused '--audit-every would find nothing: with --strategy pipeline' mnist_mlp --strategy pipeline --audit-every 5
refused '--split .*--strategy mirrored: it is for split' mnist_softmax --split 2
refused '--split-layers .*--strategy mirrored: it is for split' mnist_mlp --split-layers dense1=rows
refused "'dense1' does not say what is split how: dense1=columns" mnist_mlp --strategy split --split-layers dense1
refused "'both' is not a way to split: expected columns, rows or heads" mnist_mlp --strategy split --split-layers dense1=both
refused 'optimizer lamb .*whole parameters.*--strategy split' mnist_softmax --strategy split --optimizer lamb
refused '--audit-every would find nothing: with --strategy split' mnist_mlp --strategy split --audit-every 5
refused '--dtype mixed_bfloat16 .*--strategy split' mnist_mlp --strategy split --dtype mixed_bfloat16 --emulate-dtype
refused '--dtype mixed_bfloat16 .*--strategy pipeline' mnist_mlp --strategy pipeline --dtype mixed_bfloat16 --emulate-dtype
refused '--hidden' mnist_mlp --hidden 128,0
refused '--label-smoothing|label smoothing' mnist_softmax --label-smoothing 1

# What needs a worker and a server to be found.
refused_with_a_server() { # refused_with_a_server REGEX OPTION…
  local regex=$1
  shift
  mpi 2 "$apps/mnist_softmax" --strategy parameter_server "$@"
  expect_status 2
  expect_message "$regex"
}
refused_with_a_server 'take .*--strategy mirrored' --optimizer lamb
refused_with_a_server 'take .*--strategy mirrored' --dtype mixed_bfloat16 --emulate-dtype
refused_with_a_server '--replicas-to-aggregate 2 is more than 1 worker;' --replicas-to-aggregate 2
refused_with_a_server '--replicas-to-aggregate 1 goes with rounds.*--asynchronous' --replicas-to-aggregate 1 --asynchronous
refused_with_a_server '--max-staleness 3 goes with --asynchronous' --max-staleness 3
refused_with_a_server '--exact promises equal bits.*--asynchronous' --asynchronous --exact --checkpoint-dir "$work/checkpoints"

# Two nodes cannot sum in one node's memory.
what='--allreduce node on two nodes'
RONDA_RANKS_PER_NODE=1 run mpirun -n 2 "$apps/mnist_softmax" --allreduce node
expect_status 2
expect_message 'node'
