#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ronda/collectives/collective.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/layers/initializer.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/runtime/checkpoint/checkpoint_options.hpp>
#include <ronda/runtime/checkpoint/outputs.hpp>
#include <ronda/runtime/key_value/roles.hpp>
#include <ronda/runtime/strategy/strategy_options.hpp>
#include <ronda/runtime/trainer/nonfinite.hpp>
#include <ronda/runtime/trainer/parameter_groups.hpp>

namespace ronda {

/// Device type that the ranks compute on.
enum class DeviceChoice : std::uint8_t { automatic, cpu, cuda };
/// Parses auto, cpu or cuda. Throws an InputError that lists the names.
[[nodiscard]] DeviceChoice parse_device(std::string_view name);
[[nodiscard]] std::string_view name_of(DeviceChoice choice) noexcept;

/// Converts a number x of the network to the units of the data: factor * x + offset.
struct DataUnits {
  double factor = 1, offset = 0;
  /// Computes in float64: with a large offset, such as a time, float32 has too few digits.
  [[nodiscard]] double of(double x) const noexcept { return factor * x + offset; }
  bool operator==(const DataUnits&) const = default;
};

/// Options of a training, with the defaults of the applications.
struct TrainingOptions {
  std::string application = "training";  ///< name for messages and the summary
  std::string variant = {};  ///< text of all other settings that must be the same on all ranks, such as model sizes

  std::optional<std::uint64_t> epochs = {};  ///< 1 if neither is given; derived from `steps` if only that is given
  std::optional<std::uint64_t> steps = {};   ///< end after this many steps, counted over all epochs
  std::size_t batch_size = 0;                ///< samples per rank and step; 0: use `global_batch_size`
  std::size_t global_batch_size = 0;         ///< samples per step over all ranks; 128 if neither is given
  std::size_t accumulate = 1;                ///< micro-batches per step and rank
  /// `equal`: every rank takes the same number of samples per step. `measured`: a step has `accumulate` micro-batches
  /// times the number of ranks, and faster ranks take more of them; the shares are measured again after every
  /// `shares_every` steps.
  std::string shares = "equal";
  std::uint64_t shares_every = 100;

  OptimizerOptions optimizer = {};
  std::optional<double> learning_rate = {};  ///< at least 0; nullopt: the optimizer's default
  std::string schedule = "constant";
  std::string scale_learning_rate = "none";
  std::optional<double> warmup_epochs = {};  ///< nullopt: the schedule's default, see ScheduleRow
  double gamma = 0;                          ///< schedule exponential: factor of the rate after each epoch
  double restart_epochs = 0;         ///< schedule cosine_restarts: epochs of the first cosine (PyTorch's T_0) …
  std::uint64_t restart_factor = 1;  ///< … and the factor from each cosine's length to the next (T_mult)
  double pct_start = 0.3;            ///< schedule one_cycle: share of the steps in which the rate grows,
  double div_factor = 25;            ///< it grows from the learning rate / div_factor,
  double final_div_factor = 1e4;     ///< and falls to that initial rate / final_div_factor
  double clip_norm = 0;              ///< maximum 2-norm of the mean gradient; 0: no clipping
  double clip_value = 0;             ///< maximum absolute value of each element of the mean gradient; 0: no clipping
  /// Decay of an exponential moving average of the parameters over the updates. Tests, predictions, `save` and
  /// `keep_best` use the average; training continues from the parameters themselves. 0: none.
  double ema_decay = 0;
  /// Sets the group (rate, decay, not trained) of each parameter by its name (`conv1.weight`); null: no groups. The
  /// same on all ranks.
  std::function<ParameterGroup(std::string_view name)> group_of = {};
  /// Parameters that are not trained: names of parameters or layers, or patterns, as in GroupOption. The running values
  /// of a BatchNorm can be frozen too (`batch_norm1`, `batch_norm1.running_mean`; not `batch_norm1.weight`, `*.bias`):
  /// training then normalises by them and does not change them.
  std::vector<std::string> freeze = {};
  std::vector<GroupOption> groups = {};  ///< rates and decays of some parameters; later groups override
  /// Share of the weights that is set to zero during training and stays zero: the smallest weights of each parameter,
  /// see PruningSchedule. 0: none.
  double prune = 0;
  double prune_begin = 0.1;  ///< share of the steps after which the first weights are pruned …
  double prune_end = 0.7;    ///< … and after which the last ones are
  /// Parameters that are pruned, as in `freeze`; empty: the weights of dense layers, convolutions and attention.
  std::vector<std::string> prune_only = {};
  Initializer initializer = Initializer::he_normal;

  std::uint64_t seed = 1;
  bool shuffle = true;

  /// Share of the training data, chosen at random by the seed, that is kept for validation: each epoch is tested on it,
  /// and the test data is used only at the end. 0: none.
  double validation_split = 0;
  /// The next six options depend on the loss of each epoch's test (on the validation data, if there is some).
  std::uint64_t early_stopping = 0;        ///< end after this many epochs without an improvement; 0: disabled
  std::optional<double> target_loss = {};  ///< end after an epoch whose test has this loss or less
  bool keep_best = false;                  ///< the final model is the one of the best epoch
  std::uint64_t reduce_rate_after = 0;  ///< reduce the rate after this many epochs without an improvement; 0: disabled
  double reduce_rate_factor = 0.1;      ///< factor of each reduction
  double least_improvement = 0;         ///< an improvement reduces the loss by more than this

  DeviceChoice device = DeviceChoice::automatic;
  /// On a GPU: steps that are started before the result of the oldest is read. A request to end or to save takes effect
  /// up to `steps_in_flight` - 1 steps late; each step's numbers stay exact.
  std::size_t steps_in_flight = 4;
  /// tf32 and mixed_float16 are only for GPUs; mixed_bfloat16 is also for CPUs with bfloat16 instructions.
  Precision precision = Precision::float32;
  bool emulate_dtype = false;  ///< allow mixed_bfloat16 on CPUs without them, where it is slower than float32
  /// Type in which half-precision gradients are summed over the ranks, on the CPU: PyTorch's `reduce_dtype`. Nullopt:
  /// the gradients' own type.
  std::optional<DType> reduce_dtype = {};
  /// On a GPU: use the fastest kernels, even if the order of their sums varies. Ranks stay bitwise equal; repeated runs
  /// do not.
  bool nondeterministic = false;

  int threads = 0;  ///< threads per rank; 0: one per core assigned to the rank
  /// How ranks train together: `Sharded{.one_copy = true}`, or a name, `"sharded"`. With Pipeline and Split, whose
  /// ranks share a batch, `batch_size` counts the samples per pipeline or group.
  StrategyOptions strategy = {};
  AllreduceAlgorithm allreduce = AllreduceAlgorithm::automatic;
  Compression compression = Compression::none;  ///< of gradients in messages
  std::size_t bucket_bytes = 0;                 ///< 0: FusionOptions' default
  std::size_t memory_limit = 0;                 ///< bytes per rank; 0: no limit

  std::filesystem::path init = {}, save = {}, plan = {}, summary_json = {}, metrics = {}, metrics_csv = {},
                        tensorboard = {}, predictions = {};  ///< empty: none
  /// Metadata that `save` and checkpoints store with the parameters, under keys that the program chooses.
  std::map<std::string, std::string> metadata = {};
  DataUnits prediction_units =
      {};  ///< units of scaled targets: `predictions` are converted back to the units of the data, in float64

  std::filesystem::path checkpoint_dir = {};  ///< folder for checkpoints; empty: none are written
  CheckpointInterval checkpoint_every = {};   ///< neither steps nor seconds: only at the end
  std::size_t keep = 3;                       ///< number of newest checkpoints to keep
  /// Resume from the newest complete checkpoint. Starts a new training if the folder has no checkpoints. Throws
  /// InputError if it has some but none is complete.
  bool resume = false;
  bool resume_or_restart = false;               ///< the same, but starts a new training if no checkpoint is complete
  std::filesystem::path resume_from = {};       ///< resume from this checkpoint
  bool exact = false;                           ///< fail if resuming would change the bits of the results
  std::vector<std::string> allow_changes = {};  ///< names of options that may differ from the checkpoint's
  double time_limit = 0;                        ///< seconds from the start of the process; 0: none
  /// Called before planning and before each step. If it returns true on any rank, the training saves and ends cleanly.
  /// Not called without a `checkpoint_dir`.
  std::function<bool()> leave = {};
  std::uint64_t audit_every = 0;  ///< steps between two comparisons of the replicas; 0: only at the end
  OnDivergence on_divergence = OnDivergence::stop;
  /// If given, loss and gradients are checked in each step before they are applied. Otherwise the loss is checked
  /// before the update and the parameters after it, and a non-finite value stops the training.
  std::optional<OnNonfinite> on_nonfinite = {};
  std::vector<Fault> faults = {};  ///< injected faults, for tests
};

/// Throws InputError for options that are invalid for any model, data and ranks, and for a field that is not at its
/// default but has no effect with the other fields, such as a momentum for an optimizer without one.
void check(const TrainingOptions& options);
/// Throws InputError for a given option that has no effect, even if its value is the default.
/// @param every  the options of all strategies, as parsed
/// @param given  returns whether the option of this name (`batch-size`) was given
void refuse_unread(const TrainingOptions& options, EveryStrategy every, FunctionRef<bool(std::string_view name)> given);

/// All files and folders that a training writes, with the names of their fields: `.save`, …
[[nodiscard]] std::vector<Output> outputs_of(const TrainingOptions& options);

/// Number of server ranks; 0: all ranks have the same role. If it depends on hosts, `options` must be completed
/// (TrainingSetup).
[[nodiscard]] int servers_of(const TrainingOptions& options) noexcept;
/// Rules for a GPU's libraries that follow from the options.
[[nodiscard]] EngineRules engine_rules(const TrainingOptions& options) noexcept;

/// An option as text, exact enough that equal texts mean equal values.
struct OptionInWords {
  std::string name, value;
  bool matters = false;  ///< the course of training depends on it, apart from rounding: checkpoints store it
};

/// All options that must be the same on every rank (threads may differ; of a path only whether it is given counts).
[[nodiscard]] std::vector<OptionInWords> in_words(const TrainingOptions& options);

}  // namespace ronda
