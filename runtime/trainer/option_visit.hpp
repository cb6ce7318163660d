#pragma once
#include <string>
#include <string_view>

#include <ronda/core/option.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/trainer/device_choice.hpp>
#include <ronda/runtime/trainer/leave.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

namespace ronda {

/// The option for a number that some optimizers read; includes their default values.
/// @param field      `optimizer.beta1`
/// @param optimizer  the chosen one
[[nodiscard]] Option option_of_optimizer(std::string_view name, std::string_view field, std::string_view optimizer);
/// The option for a field that some schedules read.
/// @param schedule  the chosen one
[[nodiscard]] Option option_of_schedule(std::string_view name, std::string help, std::string_view schedule);
/// The default weight decays of all optimizers: `0; adamw 0.01`.
[[nodiscard]] std::string usual_weight_decays();
/// The optimizers with decoupled weight decay.
[[nodiscard]] std::string decoupled_optimizers();

/// The strategies, each with its help.
[[nodiscard]] std::string listed_strategies();
/// The allreduce algorithms for CPUs and those for GPUs.
[[nodiscard]] std::string listed_allreduces();

/// Calls `see(Option, field)` for each option, or `see(Option, field, parse)` for an option with its own parser.
/// @param Options  TrainingOptions, or const
/// @param every    has the fields of strategies
template <class Options, class Visitor>
void visit(Options& o, EveryStrategy& every, Visitor&& see) {
  const std::string length = "Data and length";
  see(Option{.name = "epochs",
             .group = length,
             .help = "Passes over the training data",
             .otherwise = "1, or as --steps needs",
             .common = true},
      o.epochs);
  see(Option{.name = "steps", .group = length, .help = "Last step, counted over all epochs", .common = true}, o.steps);
  see(Option{.name = "batch-size",
             .group = length,
             .help = "Samples per rank and step",
             .otherwise = "a part of the global batch",
             .positive = true},
      o.batch_size);
  see(Option{.name = "global-batch-size",
             .group = length,
             .help = "Samples per step over all ranks",
             .otherwise = "128",
             .common = true,
             .matters = true,
             .positive = true},
      o.global_batch_size);
  see(Option{.name = "accumulate", .group = length, .help = "Micro-batches per step and rank", .common = true},
      o.accumulate);
  see(Option{.name = "shares",
             .group = length,
             .help = "Micro-batches of a rank: equal, or measured: more for faster ranks"},
      o.shares);
  see(Option{.name = "shares-every",
             .group = length,
             .help = "Steps between two measurements of the ranks' speed",
             .positive = true,
             .unread = o.shares == "measured" ? "" : "for " + setting("shares", "equal") + ": nothing is measured"},
      o.shares_every);
  see(Option{.name = "seed",
             .group = length,
             .help = "Seed of initial parameters and sample order",
             .common = true,
             .matters = true},
      o.seed);
  see(Option{.name = "shuffle",
             .group = length,
             .help = "Take samples in the order of the files",
             .matters = true,
             .negated = true},
      o.shuffle);
  see(Option{.name = "validation-split",
             .group = length,
             .help = "Share of the training data that epochs are tested with",
             .common = true,
             .matters = true},
      o.validation_split);

  const std::string learning = "Learning";
  auto& p = o.optimizer;
  see(Option{.name = "optimizer",
             .group = learning,
             .help = listed(optimizer_rows(), [](const OptimizerRow& row) { return row.name; }),
             .field = "optimizer.name",
             .common = true,
             .matters = true},
      p.name);
  see(Option{.name = "learning-rate",
             .group = learning,
             .help = "Learning rate before scaling",
             .otherwise = "the --optimizer's",
             .unset = "the optimizer's",
             .common = true,
             .matters = true},
      o.learning_rate);
  see(Option{.name = "scale-learning-rate",
             .group = learning,
             .help = "Scaling by the global batch over 128: none, linear, sqrt",
             .matters = true},
      o.scale_learning_rate);
  see(Option{.name = "schedule",
             .group = learning,
             .help = listed(schedule_rows(), [](const ScheduleRow& row) { return row.name; }),
             .common = true,
             .matters = true},
      o.schedule);
  see(Option{.name = "warmup-epochs",
             .group = learning,
             .help = "Epochs in which the learning rate grows",
             .otherwise = "a tenth of all for step, cosine and polynomial; none for others",
             .unset = "the schedule's",
             .matters = true},
      o.warmup_epochs);
  see(option_of_schedule("gamma", "factor of the rate after each epoch", o.schedule), o.gamma);
  see(option_of_schedule("restart-epochs", "epochs of the first cosine (T_0)", o.schedule), o.restart_epochs);
  see(option_of_schedule("restart-factor", "length of a cosine over that of the one before (T_mult)", o.schedule),
      o.restart_factor);
  see(option_of_schedule("pct-start", "share of the steps in which the rate grows", o.schedule), o.pct_start);
  see(option_of_schedule("div-factor", "learning rate over the first rate", o.schedule), o.div_factor);
  see(option_of_schedule("final-div-factor", "first rate over the last rate", o.schedule), o.final_div_factor);
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
             .common = true,
             .matters = true},
      p.weight_decay);
  see(Option{.name = "clip-norm",
             .group = learning,
             .help = "Clip the mean gradient to this 2-norm; 0: no clipping",
             .common = true,
             .matters = true},
      o.clip_norm);
  see(Option{.name = "clip-value",
             .group = learning,
             .help = "Clip the mean gradient's elements to ± this; 0: no clipping",
             .matters = true},
      o.clip_value);
  see(Option{.name = "ema-decay",
             .group = learning,
             .help = "Decay of the parameters' moving average, which is tested; 0: none",
             .matters = true},
      o.ema_decay);
  see(Option{.name = "freeze",
             .group = learning,
             .help = "Layers, parameters or patterns that stay as they are: conv1,*.bias",
             .matters = true},
      o.freeze);
  see(Option{.name = "group",
             .group = learning,
             .help = "Rate or decay of some parameters; repeatable: '*.bias:learning_rate=0.1,weight_decay=0'",
             .field = "groups",
             .matters = true},
      o.groups, parse_group);
  see(Option{.name = "prune",
             .group = learning,
             .help = "Share of weights, the smallest, set to zero in training: 0.9",
             .matters = true},
      o.prune);
  see(Option{.name = "prune-begin",
             .group = learning,
             .help = "With --prune: share of the steps before the first zeros",
             .matters = o.prune > 0,
             .unread = o.prune > 0 ? "" : "without " + setting("prune")},
      o.prune_begin);
  see(Option{.name = "prune-end",
             .group = learning,
             .help = "With --prune: share of the steps before the last zeros",
             .matters = o.prune > 0,
             .unread = o.prune > 0 ? "" : "without " + setting("prune")},
      o.prune_end);
  see(Option{.name = "prune-only",
             .group = learning,
             .help = "With --prune: parameters to prune, as in --freeze",
             .otherwise = "the weights of dense layers, convolutions and attention",
             .matters = o.prune > 0,
             .unread = o.prune > 0 ? "" : "without " + setting("prune")},
      o.prune_only);
  see(Option{.name = "early-stopping",
             .group = learning,
             .help = "Epochs without a better test before the training ends; 0: none",
             .common = true},
      o.early_stopping);
  see(Option{.name = "target-loss",
             .group = learning,
             .help = "Loss of an epoch's test at which the training ends",
             .otherwise = "none",
             .unread = o.prune > 0 ? "with " + setting("prune") + ": the training would end with weights not pruned yet"
                                   : Message()},
      o.target_loss);
  see(Option{.name = "keep-best", .group = learning, .help = "Save the model of the epoch with the best test"},
      o.keep_best);
  see(Option{.name = "reduce-rate-after",
             .group = learning,
             .help = "Epochs without a better test before the rate falls; 0: none",
             .matters = true},
      o.reduce_rate_after);
  see(Option{.name = "reduce-rate-factor",
             .group = learning,
             .help = "Factor of each such reduction",
             .matters = o.reduce_rate_after > 0,
             .unread = o.reduce_rate_after > 0 ? "" : "without " + setting("reduce_rate_after")},
      o.reduce_rate_factor);
  see(Option{.name = "least-improvement",
             .group = learning,
             .help = "Difference of test losses from which on a test is better",
             .matters = o.reduce_rate_after > 0,
             .unread = o.early_stopping > 0 || o.keep_best || o.reduce_rate_after > 0
                           ? ""
                           : "without " + setting("early_stopping") + ", " + setting("keep_best") + " or " +
                                 setting("reduce_rate_after")},
      o.least_improvement);
  see(Option{.name = "initializer",
             .group = learning,
             .help = "he_normal, he_uniform, glorot_normal, glorot_uniform, zeros, ones"},
      o.initializer, parse_initializer);
  see(Option{.name = "dtype",
             .group = learning,
             .help = "Type of layers: float32, mixed_bfloat16; on GPUs also tf32, mixed_float16",
             .field = "precision",
             .common = true,
             .matters = true},
      o.precision, parse_precision);
  see(Option{.name = "emulate-dtype",
             .group = learning,
             .help = "--dtype mixed_bfloat16 on a processor without instructions for it, slowly",
             .alike = false},
      o.emulate_dtype);
  see(Option{.name = "reduce-dtype",
             .group = learning,
             .help = "Type in which half gradients are summed on processors: bfloat16, float32",
             .otherwise = "that of the gradients",
             .unset = "theirs",
             .matters = true},
      o.reduce_dtype, parse_reduce_dtype);

  const std::string placement = "Where and how";
  see(Option{.name = "device", .group = placement, .help = "auto, cpu, cuda", .common = true}, o.device, parse_device);
  see(Option{.name = "nondeterministic",
             .group = placement,
             .help = "With --device cuda: fastest engines; last bits of equal runs may differ"},
      o.nondeterministic);
  see(Option{.name = "steps-in-flight",
             .group = placement,
             .help = "With --device cuda: steps begun before the oldest result is read",
             .unread = o.device == DeviceChoice::cpu ? "for " + setting("device", "cpu") : ""},
      o.steps_in_flight);
  see(Option{.name = "threads",
             .group = placement,
             .help = "Threads per rank",
             .otherwise = "OMP_NUM_THREADS, or the cores it is bound to",
             .common = true,
             .alike = false},
      o.threads);
  see(Option{.name = "strategy", .group = placement, .help = listed_strategies(), .common = true}, o.strategy,
      parse_strategy);
  visit(every, o.strategy.name(), see);
  see(Option{.name = "allreduce", .group = placement, .help = listed_allreduces()}, o.allreduce, parse_allreduce);
  see(Option{.name = "compression",
             .group = placement,
             .help = "Gradients on the wire: none, bf16, fp16, int8, int4, 2bit, auto",
             .matters = true},
      o.compression, parse_compression);
  see(Option{.name = "bucket-bytes",
             .group = placement,
             .help = "Bytes of gradients that are reduced together: 4M",
             .otherwise = "16M",
             .is_size = true},
      o.bucket_bytes);
  see(Option{.name = "memory-limit",
             .group = placement,
             .help = "Bytes per rank above which a plan is refused: 2G",
             .otherwise = "none",
             .is_size = true},
      o.memory_limit);
  see(Option{.name = "plan", .group = placement, .help = "File of all choices made by timing; written if missing"},
      o.plan);

  const std::string resilience = "Not losing work";
  see(Option{.name = "checkpoint-dir",
             .group = resilience,
             .help = "Folder of checkpoints, which all hosts share",
             .common = true},
      o.checkpoint_dir);
  see(Option{.name = "checkpoint-every",
             .group = resilience,
             .help = "Steps, or 30s, 10m, 1h, between two checkpoints",
             .otherwise = "at the end alone",
             .common = true},
      o.checkpoint_every, parse_checkpoint_interval);
  see(Option{.name = "keep",
             .group = resilience,
             .help = "Number of newest checkpoints to keep",
             .unread = o.checkpoint_dir.empty() ? "without " + setting("checkpoint_dir") : ""},
      o.keep);
  see(Option{.name = "resume",
             .group = resilience,
             .help = "Resume from the newest whole checkpoint, if there are any",
             .common = true},
      o.resume);
  see(Option{.name = "resume-or-restart",
             .group = resilience,
             .help = "--resume, but start anew if no checkpoint is whole"},
      o.resume_or_restart);
  see(Option{.name = "resume-from", .group = resilience, .help = "Checkpoint to resume from: DIR/step-N"},
      o.resume_from);
  see(Option{.name = "exact",
             .group = resilience,
             .help = "End rather than resume with other bits",
             .unread = o.checkpoint_dir.empty() && o.resume_from.empty()
                           ? "without " + setting("checkpoint_dir") + " or " + setting("resume_from")
                           : ""},
      o.exact);
  see(Option{.name = "allow-changes",
             .group = resilience,
             .help = "Options that may differ from the checkpoint's: seed,learning-rate"},
      o.allow_changes);
  see(Option{.name = "time-limit",
             .group = resilience,
             .help = "Time, H:M:S, after which to save and end with status 75",
             .otherwise = "none"},
      o.time_limit, parse_time_limit);
  see(Option{.name = "audit-every",
             .group = resilience,
             .help = "Steps between two comparisons of the replicas",
             .otherwise = "not"},
      o.audit_every);
  see(Option{.name = "on-divergence",
             .group = resilience,
             .help = "If replicas differ: stop, rollback",
             .unread = o.audit_every > 0 ? "" : "without " + setting("audit_every")},
      o.on_divergence, parse_on_divergence);
  see(Option{.name = "on-nonfinite",
             .group = resilience,
             .help = "If a loss or gradient is not finite: stop, skip, rollback",
             .otherwise = "stop, by the loss alone"},
      o.on_nonfinite, parse_on_nonfinite);
  see(Option{.name = "inject", .group = "", .help = "For tests: KIND@STEP[:RANK]", .field = "faults"}, o.faults);

  const std::string files = "Files";
  see(Option{.name = "init", .group = files, .help = "Initial parameters (safetensors)", .common = true}, o.init);
  see(Option{.name = "save", .group = files, .help = "File for the trained parameters (safetensors)", .common = true},
      o.save);
  see(Option{.name = "predictions", .group = files, .help = "File for the outputs for the test data (safetensors)"},
      o.predictions);
  see(Option{.name = "summary-json", .group = files, .help = "File for the results (JSON)", .common = true},
      o.summary_json);
  see(Option{.name = "metrics", .group = files, .help = "File for a JSON line per step", .common = true}, o.metrics);
  see(Option{.name = "metrics-csv", .group = files, .help = "File for a table with a row per step (CSV)"},
      o.metrics_csv);
  see(Option{.name = "tensorboard", .group = files, .help = "Folder for scalars that TensorBoard reads"},
      o.tensorboard);
}

}  // namespace ronda
