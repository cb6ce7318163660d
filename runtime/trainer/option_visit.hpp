#pragma once
#include <string>
#include <string_view>

#include <ronda/core/listed.hpp>
#include <ronda/core/option.hpp>
#include <ronda/runtime/trainer/device_choice.hpp>
#include <ronda/runtime/trainer/leave.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

namespace ronda {

/// The option for a number that some optimizers read, with their usual values.
/// @param field      `optimizer.beta1`
/// @param optimizer  the chosen one
[[nodiscard]] Option option_of_optimizer(std::string_view name, std::string_view field, std::string_view optimizer);
/// The option for a field that some schedules read.
/// @param schedule  the chosen one
[[nodiscard]] Option option_of_schedule(std::string_view name, std::string help, std::string_view schedule);
/// The weight decays of all optimizers: `0; adamw 0.01`.
[[nodiscard]] std::string usual_weight_decays();
/// Those that decouple it.
[[nodiscard]] std::string decoupled_optimizers();

/// Each with its help.
[[nodiscard]] std::string listed_strategies();
/// Those of processors, and those of GPUs.
[[nodiscard]] std::string listed_allreduces();

/// Calls `see(Option, field)` for each option, or `see(Option, field, parse)` where a text is read in a way of its own.
/// @param Options  TrainingOptions, or const
/// @param every    has the fields of strategies
template <class Options, class Visitor>
void visit(Options& o, EveryStrategy& every, Visitor&& see) {
  const std::string length = "Data and length";
  see(Option{.name = "epochs",
             .group = length,
             .help = "Passes over the training data",
             .otherwise = "1, or what --steps needs"},
      o.epochs);
  see(Option{.name = "steps", .group = length, .help = "End after so many steps, counted over all epochs"}, o.steps);
  see(Option{.name = "batch-size",
             .group = length,
             .help = "Samples a rank and step",
             .otherwise = "its part of the global batch",
             .positive = true},
      o.batch_size);
  see(Option{.name = "global-batch-size",
             .group = length,
             .help = "Samples a step over all ranks",
             .otherwise = "128",
             .matters = true,
             .positive = true},
      o.global_batch_size);
  see(Option{.name = "accumulate", .group = length, .help = "Micro-batches a step and rank, reduced once"},
      o.accumulate);
  see(Option{.name = "shares",
             .group = length,
             .help =
                 "How ranks share a step: equal, or measured: faster ones take more of all ranks' micro-batches; give "
                 "--accumulate 4 or more"},
      o.shares);
  see(Option{.name = "shares-every",
             .group = length,
             .help = "Steps between two measurements",
             .positive = true,
             .unread = o.shares == "measured" ? "" : "for .shares = equal: nothing is measured"},
      o.shares_every);
  see(Option{.name = "seed",
             .group = length,
             .help = "Of the initial parameters and the order of samples",
             .matters = true},
      o.seed);
  see(Option{.name = "shuffle",
             .group = length,
             .help = "Take the samples in the order of the files",
             .matters = true,
             .negated = true},
      o.shuffle);
  see(Option{.name = "validation-split",
             .group = length,
             .help = "Share of the training data that epochs are tested with; the test data is for the end",
             .matters = true},
      o.validation_split);

  const std::string learning = "Learning";
  auto& p = o.optimizer;
  see(Option{.name = "optimizer",
             .group = learning,
             .help = listed(optimizer_rows(), [](const OptimizerRow& row) { return row.name; }),
             .field = "optimizer.name",
             .matters = true},
      p.name);
  see(Option{.name = "learning-rate",
             .group = learning,
             .help = "Before scaling",
             .otherwise = "the --optimizer's",
             .unset = "the optimizer's",
             .matters = true},
      o.learning_rate);
  see(Option{.name = "scale-learning-rate",
             .group = learning,
             .help = "With the global batch, from 128: none, linear, sqrt",
             .matters = true},
      o.scale_learning_rate);
  see(Option{.name = "schedule",
             .group = learning,
             .help = listed(schedule_rows(), [](const ScheduleRow& row) { return row.name; }),
             .matters = true},
      o.schedule);
  see(Option{.name = "warmup-epochs",
             .group = learning,
             .help = "Epochs in which the rate grows",
             .otherwise = "a tenth of all for step, cosine and polynomial; none for others",
             .unset = "the schedule's",
             .matters = true},
      o.warmup_epochs);
  see(option_of_schedule("gamma", "multiplies the rate after each epoch since the warm-up", o.schedule), o.gamma);
  see(option_of_schedule("restart-epochs", "epochs of the first cosine (T_0)", o.schedule), o.restart_epochs);
  see(option_of_schedule("restart-factor", "how many times as long each other one is as the one before (T_mult)",
                         o.schedule),
      o.restart_factor);
  see(option_of_schedule("pct-start", "share of the steps in which the rate grows", o.schedule), o.pct_start);
  see(option_of_schedule("div-factor", "the first rate is the learning rate over this", o.schedule), o.div_factor);
  see(option_of_schedule("final-div-factor", "the last rate is the first over this", o.schedule), o.final_div_factor);
  see(option_of_optimizer("momentum", "optimizer.momentum", p.name), p.momentum);
  see(option_of_optimizer("beta1", "optimizer.beta1", p.name), p.beta1);
  see(option_of_optimizer("beta2", "optimizer.beta2", p.name), p.beta2);
  see(option_of_optimizer("epsilon", "optimizer.epsilon", p.name), p.epsilon);
  see(option_of_optimizer("alpha", "optimizer.alpha", p.name), p.alpha);
  Option centered = option_of_optimizer("centered", "optimizer.centered", p.name);
  centered.help += ": by the variance of gradients, not by their mean square";
  centered.otherwise = {};
  see(centered, p.centered);
  see(option_of_optimizer("lr-decay", "optimizer.lr_decay", p.name), p.lr_decay);
  see(option_of_optimizer("initial-accumulator-value", "optimizer.initial_accumulator_value", p.name),
      p.initial_accumulator_value);
  see(option_of_optimizer("rho", "optimizer.rho", p.name), p.rho);
  see(option_of_optimizer("momentum-decay", "optimizer.momentum_decay", p.name), p.momentum_decay);
  see(Option{.name = "weight-decay",
             .group = learning,
             .help = "L2; decoupled for " + decoupled_optimizers(),
             .otherwise = usual_weight_decays(),
             .field = "optimizer.weight_decay",
             .unset = "the optimizer's",
             .matters = true},
      p.weight_decay);
  see(Option{.name = "clip-norm",
             .group = learning,
             .help = "Clip the mean gradient to this 2-norm; 0: not",
             .matters = true},
      o.clip_norm);
  see(Option{.name = "clip-value",
             .group = learning,
             .help = "Clip each element of the mean gradient to ± this; 0: not",
             .matters = true},
      o.clip_value);
  see(Option{.name = "ema-decay",
             .group = learning,
             .help = "Test and save an exponential moving average of the parameters, with this decay: 0.999; 0: the "
                     "parameters themselves",
             .matters = true},
      o.ema_decay);
  see(Option{.name = "freeze",
             .group = learning,
             .help = "Layers, parameters or patterns to freeze: conv1,*.bias,batch_norm1 (with its statistics)",
             .matters = true},
      o.freeze);
  see(Option{.name = "group",
             .group = learning,
             .help = "A rate or a decay of some parameters: '*.bias:learning_rate=0.1,weight_decay=0'; may be given "
                     "several times, and the last one counts",
             .field = "groups",
             .matters = true},
      o.groups, parse_group);
  see(Option{.name = "prune",
             .group = learning,
             .help = "Set this share of the weights to zero while training, the smallest ones of each parameter: 0.9; "
                     "0: none",
             .matters = true},
      o.prune);
  see(Option{.name = "prune-begin",
             .group = learning,
             .help = "With --prune: share of the steps after which the first weights are zero",
             .matters = o.prune > 0,
             .unread = o.prune > 0 ? "" : "without .prune"},
      o.prune_begin);
  see(Option{.name = "prune-end",
             .group = learning,
             .help = "With --prune: share of the steps after which no more weights become zero; the rest train on",
             .matters = o.prune > 0,
             .unread = o.prune > 0 ? "" : "without .prune"},
      o.prune_end);
  see(Option{.name = "prune-only",
             .group = learning,
             .help = "With --prune: parameters that are pruned, as in --freeze: conv2,dense1.weight",
             .otherwise = "the weights of dense layers, convolutions and attention",
             .matters = o.prune > 0,
             .unread = o.prune > 0 ? "" : "without .prune"},
      o.prune_only);
  see(Option{.name = "early-stopping",
             .group = learning,
             .help = "End after so many epochs whose test is no better than the best; 0: do not"},
      o.early_stopping);
  see(Option{.name = "keep-best",
             .group = learning,
             .help = "In the end the model is that of the epoch with the best test"},
      o.keep_best);
  see(Option{.name = "reduce-rate-after",
             .group = learning,
             .help = "Reduce the rate after so many epochs whose test is no better; 0: do not",
             .matters = true},
      o.reduce_rate_after);
  see(Option{.name = "reduce-rate-factor",
             .group = learning,
             .help = "By this, each time",
             .matters = o.reduce_rate_after > 0,
             .unread = o.reduce_rate_after > 0 ? "" : "without .reduce_rate_after"},
      o.reduce_rate_factor);
  see(Option{.name = "least-improvement",
             .group = learning,
             .help = "A test is better where its loss is less by more than this",
             .matters = o.reduce_rate_after > 0,
             .unread = o.early_stopping > 0 || o.keep_best || o.reduce_rate_after > 0
                           ? ""
                           : "without .early_stopping, .keep_best or .reduce_rate_after"},
      o.least_improvement);
  see(Option{.name = "initializer",
             .group = learning,
             .help = "he_normal, he_uniform, glorot_normal, glorot_uniform, zeros, ones"},
      o.initializer, parse_initializer);
  see(Option{.name = "dtype",
             .group = learning,
             .help =
                 "float32; mixed_bfloat16, on processors and GPUs that have it; with --device cuda also tf32, whose "
                 "products are less exact, and mixed_float16",
             .field = "precision",
             .matters = true},
      o.precision, parse_precision);
  see(Option{.name = "emulate-dtype",
             .group = learning,
             .help = "--dtype mixed_bfloat16 also on a processor without instructions for it, slower than float32",
             .alike = false},
      o.emulate_dtype);
  see(Option{.name = "reduce-dtype",
             .group = learning,
             .help = "Sum half gradients over the ranks in bfloat16 or float32, on the processor",
             .otherwise = "that of the gradients",
             .unset = "theirs",
             .matters = true},
      o.reduce_dtype, parse_reduce_dtype);

  const std::string placement = "Where and how";
  see(Option{.name = "device", .group = placement, .help = "auto, cpu, cuda"}, o.device, parse_device);
  see(Option{.name = "nondeterministic",
             .group = placement,
             .help = "With --device cuda: the fastest engines, also where equal runs then differ in their last bits"},
      o.nondeterministic);
  see(Option{.name = "steps-in-flight",
             .group = placement,
             .help = "With --device cuda: steps that are begun before the oldest is looked at",
             .unread = o.device == DeviceChoice::cpu ? "for .device = cpu" : ""},
      o.steps_in_flight);
  see(Option{.name = "threads",
             .group = placement,
             .help = "Of a rank",
             .otherwise = "OMP_NUM_THREADS, or the cores it is bound to",
             .alike = false},
      o.threads);
  see(Option{.name = "strategy", .group = placement, .help = listed_strategies()}, o.strategy, parse_strategy);
  visit(every, o.strategy.name(), see);
  see(Option{.name = "allreduce", .group = placement, .help = listed_allreduces()}, o.allreduce, parse_allreduce);
  see(Option{.name = "compression",
             .group = placement,
             .help = "Of gradients on the wire: none, bf16, fp16, int8, int4, 2bit; auto: bf16 between nodes, where "
                     "that saves a "
                     "tenth of the time",
             .matters = true},
      o.compression, parse_compression);
  see(Option{.name = "bucket-bytes",
             .group = placement,
             .help = "Gradients reduced together, e.g. 4M",
             .otherwise = "16M",
             .is_size = true},
      o.bucket_bytes);
  see(Option{.name = "memory-limit",
             .group = placement,
             .help = "Refuse a plan that needs more a rank, e.g. 2G; the copies that checkpoints and audits keep are "
                     "not counted",
             .otherwise = "none",
             .is_size = true},
      o.memory_limit);
  see(Option{.name = "plan",
             .group = placement,
             .help = "Take everything chosen by timing from this file, or write it there"},
      o.plan);

  const std::string resilience = "Not losing work";
  see(Option{.name = "checkpoint-dir",
             .group = resilience,
             .help = "Save the training in this folder, at the end and where it has to end early; all hosts share it"},
      o.checkpoint_dir);
  see(Option{.name = "checkpoint-every",
             .group = resilience,
             .help = "And every so many steps, or every 30s, 10m, 1h",
             .otherwise = "at the end alone"},
      o.checkpoint_every, parse_checkpoint_interval);
  see(Option{.name = "keep",
             .group = resilience,
             .help = "The newest checkpoints that stay",
             .unread = o.checkpoint_dir.empty() ? "without .checkpoint_dir" : ""},
      o.keep);
  see(Option{.name = "resume",
             .group = resilience,
             .help = "Go on from the newest whole checkpoint; start if there is none"},
      o.resume);
  see(Option{.name = "resume-or-restart",
             .group = resilience,
             .help = "--resume, but start anew if no checkpoint is whole"},
      o.resume_or_restart);
  see(Option{.name = "resume-from", .group = resilience, .help = "Go on from this one, DIR/step-N"}, o.resume_from);
  see(Option{.name = "exact",
             .group = resilience,
             .help = "End rather than go on with other bits, as on other hosts",
             .unread =
                 o.checkpoint_dir.empty() && o.resume_from.empty() ? "without .checkpoint_dir or .resume_from" : ""},
      o.exact);
  see(Option{.name = "allow-changes",
             .group = resilience,
             .help = "Options that may differ from the checkpoint's, e.g. seed,learning-rate"},
      o.allow_changes);
  see(Option{.name = "time-limit",
             .group = resilience,
             .help = "H:M:S after which to save and end with status 75",
             .otherwise = "none"},
      o.time_limit, parse_time_limit);
  see(Option{.name = "audit-every",
             .group = resilience,
             .help = "Compare the replicas every so many steps, and before each checkpoint",
             .otherwise = "not"},
      o.audit_every);
  see(Option{.name = "on-divergence",
             .group = resilience,
             .help = "Replicas that differ: stop, rollback",
             .unread = o.audit_every > 0 ? "" : "without .audit_every"},
      o.on_divergence, parse_on_divergence);
  see(Option{.name = "on-nonfinite",
             .group = resilience,
             .help = "A loss or gradient that is not finite: stop, skip, rollback; looks at all gradients in each step",
             .otherwise = "stop, by the loss alone"},
      o.on_nonfinite, parse_on_nonfinite);
  see(Option{.name = "inject", .group = "", .help = "For tests: KIND@STEP[:RANK]", .field = "faults"}, o.faults);

  const std::string files = "Files";
  see(Option{.name = "init", .group = files, .help = "Start from these parameters (safetensors)"}, o.init);
  see(Option{.name = "save", .group = files, .help = "Write the trained parameters (safetensors)"}, o.save);
  see(Option{.name = "predictions", .group = files, .help = "Write the outputs for the test data (safetensors)"},
      o.predictions);
  see(Option{.name = "summary-json", .group = files, .help = "Write the results"}, o.summary_json);
  see(Option{.name = "metrics", .group = files, .help = "Write a JSON line a step"}, o.metrics);
  see(Option{.name = "tensorboard", .group = files, .help = "Write scalars for TensorBoard to this folder"},
      o.tensorboard);
}

}  // namespace ronda
