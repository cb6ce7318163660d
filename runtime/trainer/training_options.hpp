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
#include <ronda/runtime/checkpoint/checkpointer.hpp>
#include <ronda/runtime/checkpoint/faults.hpp>
#include <ronda/runtime/checkpoint/outputs.hpp>
#include <ronda/runtime/checkpoint/replica_audit.hpp>
#include <ronda/runtime/key_value/roles.hpp>
#include <ronda/runtime/strategy/strategy_options.hpp>
#include <ronda/runtime/trainer/nonfinite.hpp>
#include <ronda/runtime/trainer/parameter_groups.hpp>

namespace ronda {

/// What ranks compute on.
enum class DeviceChoice : std::uint8_t { automatic, cpu, cuda };
/// auto, cpu or cuda. Throws InputError that lists the names.
[[nodiscard]] DeviceChoice parse_device(std::string_view name);
[[nodiscard]] std::string_view name_of(DeviceChoice choice) noexcept;

/// Converts a number x of the network to the units of the data: factor * x + offset.
struct DataUnits {
  double factor = 1, offset = 0;
  /// In float64: beside a large offset, as of times, a float32 has not enough digits.
  [[nodiscard]] double of(double x) const noexcept { return factor * x + offset; }
  bool operator==(const DataUnits&) const = default;
};

/// How to train: the applications' options, with their defaults.
struct TrainingOptions {
  std::string application = "training";  ///< for messages and the summary
  std::string variant = {};              ///< whatever else must be the same on all ranks (sizes of the model), in words

  std::optional<std::uint64_t> epochs = {};  ///< 1 where neither is given; as many as `steps` need where only that is
  std::optional<std::uint64_t> steps = {};   ///< end after so many steps, counted over all epochs
  std::size_t batch_size = 0;                ///< samples a rank and step; 0: `global_batch_size` holds
  std::size_t global_batch_size = 0;         ///< over all ranks; 128 where neither is given
  std::size_t accumulate = 1;                ///< micro-batches a step and rank
  /// `equal`: each rank takes as many samples of a step. `measured`: a step has `accumulate` micro-batches for each
  /// rank, and faster ranks take more of them; that is measured anew after every `shares_every` steps.
  std::string shares = "equal";
  std::uint64_t shares_every = 100;

  OptimizerOptions optimizer = {};
  std::optional<double> learning_rate = {};  ///< 0 or more; not given: the optimizer's default
  std::string schedule = "constant";
  std::string scale_learning_rate = "none";
  std::optional<double> warmup_epochs = {};  ///< not given: the schedule's, see ScheduleRow
  double gamma = 0;                          ///< schedule exponential: multiplies the rate after each epoch
  double restart_epochs = 0;         ///< schedule cosine_restarts: epochs of the first cosine (PyTorch's T_0) …
  std::uint64_t restart_factor = 1;  ///< … and how many times as long each other one is as the one before (T_mult)
  double pct_start = 0.3;            ///< schedule one_cycle: share of the steps in which the rate grows …
  double div_factor = 25;            ///< … from the learning rate over this …
  double final_div_factor = 1e4;     ///< … before it falls to that over this
  double clip_norm = 0;              ///< 2-norm that the mean gradient is clipped to; 0: no clipping
  double clip_value = 0;             ///< each element of the mean gradient is clipped to ± this; 0: no clipping
  /// Decay of an exponential moving average of the parameters over the updates. Tests, predictions, `save` and
  /// `keep_best` use the average; training continues from the parameters themselves. 0: none.
  double ema_decay = 0;
  /// Treats some parameters differently, or does not train them, by their names (`conv1.weight`); null: none. The same
  /// on all ranks.
  std::function<ParameterGroup(std::string_view name)> group_of = {};
  /// Parameters that are not trained: their names, their layers', or patterns, as in GroupOption. The running values of
  /// a BatchNorm can be frozen too (`batch_norm1`, `batch_norm1.running_mean`; not `batch_norm1.weight`, `*.bias`): it
  /// then normalises by them in training too, and they do not change.
  std::vector<std::string> freeze = {};
  std::vector<GroupOption> groups = {};  ///< rates and decays of some parameters; later groups win
  /// Share of the weights that is set to zero during the training, the smallest ones of each parameter, and stays zero:
  /// see PruningSchedule. 0: none.
  double prune = 0;
  double prune_begin = 0.1;  ///< share of the steps after which the first weights are pruned …
  double prune_end = 0.7;    ///< … and the last ones
  /// Parameters that are pruned, as in `freeze`; empty: the weights of dense layers, convolutions and attention.
  std::vector<std::string> prune_only = {};
  Initializer initializer = Initializer::he_normal;

  std::uint64_t seed = 1;
  bool shuffle = true;

  /// Share of the training data, a random part of it by the seed, that is kept for validation: epochs are tested with
  /// it, and the test data is for the end. 0: none.
  double validation_split = 0;
  /// The next three watch the loss of each epoch's test (validation data, where there is some).
  std::uint64_t early_stopping = 0;     ///< end after so many epochs without a better one; 0: do not
  bool keep_best = false;               ///< in the end the model is that of the best epoch
  std::uint64_t reduce_rate_after = 0;  ///< reduce the rate after so many epochs without a better one; 0: do not
  double reduce_rate_factor = 0.1;      ///< by this, each time
  double least_improvement = 0;         ///< a loss is better where it is less by more than this

  DeviceChoice device = DeviceChoice::automatic;
  /// On a GPU: steps that are begun before the result of the oldest is read. A request to end or to save takes effect
  /// so many steps less one late; the numbers of every step stay exact.
  std::size_t steps_in_flight = 4;
  /// tf32 and mixed_float16 are for GPUs only, mixed_bfloat16 also for processors that have instructions for it.
  Precision precision = Precision::float32;
  bool emulate_dtype = false;  ///< mixed_bfloat16 also on a processor without, where it is slower than float32
  /// Type in which half gradients are summed over the ranks, on the processor: PyTorch's `reduce_dtype`. Nullopt: their
  /// own.
  std::optional<DType> reduce_dtype = {};
  /// On a GPU: take the fastest engines, also those whose sums depend on which of their threads came first. Ranks stay
  /// equal to the bit; runs do not.
  bool nondeterministic = false;

  int threads = 0;  ///< of a rank; 0: the cores that it has
  /// How ranks train together: `Sharded{.one_copy = true}`, or a name, `"sharded"`. Pipeline and Split, whose ranks
  /// share a batch: `batch_size` is of one pipeline or group.
  StrategyOptions strategy = {};
  AllreduceAlgorithm allreduce = AllreduceAlgorithm::automatic;
  Compression compression = Compression::none;  ///< of gradients on the wire
  std::size_t bucket_bytes = 0;                 ///< 0: FusionOptions' default
  std::size_t memory_limit = 0;                 ///< bytes a rank; 0: none

  std::filesystem::path init = {}, save = {}, plan = {}, summary_json = {}, metrics = {}, tensorboard = {},
                        predictions = {};  ///< empty: none
  /// Texts about the model, by names of the program's choice, that `save` and checkpoints keep with the parameters.
  std::map<std::string, std::string> metadata = {};
  DataUnits prediction_units =
      {};  ///< where the targets were scaled: `predictions` are written as the data has them, in float64

  std::filesystem::path checkpoint_dir = {};  ///< where the training is saved; empty: nowhere
  CheckpointInterval checkpoint_every = {};   ///< neither steps nor seconds: only at the end
  std::size_t keep = 3;                       ///< newest checkpoints that stay
  /// Resume from the newest whole checkpoint. A folder without checkpoints: start anew. InputError if no checkpoint is
  /// whole.
  bool resume = false;
  bool resume_or_restart = false;               ///< the same, except that the training starts anew if none is whole
  std::filesystem::path resume_from = {};       ///< resume from this checkpoint
  bool exact = false;                           ///< fail if a resumed training would have other bits
  std::vector<std::string> allow_changes = {};  ///< options that may differ from the checkpoint's, by name
  double time_limit = 0;                        ///< seconds from the start of the process; 0: none
  /// Called before the planning and before each step; true on any rank: save and end in good order. Never without a
  /// `checkpoint_dir`.
  std::function<bool()> leave = {};
  std::uint64_t audit_every = 0;  ///< steps between two comparisons of the replicas; 0: only at the end
  OnDivergence on_divergence = OnDivergence::stop;
  /// If given, loss and gradients are checked in each step before they are applied. Otherwise the loss is checked
  /// before and the parameters after, and the training stops.
  std::optional<OnNonfinite> on_nonfinite = {};
  std::vector<Fault> faults = {};  ///< what goes wrong, for tests
};

/// Throws InputError for options that cannot work with any model, data and ranks, and for a field that differs from its
/// default and has no effect with the other fields, such as a momentum for an optimizer without one.
void check(const TrainingOptions& options);
/// Throws InputError for a given option that has no effect, even if its value is the default.
/// @param every  where the options of strategies were read into
/// @param given  whether the option of this name (`batch-size`) was given
void refuse_unread(const TrainingOptions& options, EveryStrategy every, FunctionRef<bool(std::string_view name)> given);

/// All files and folders that a training writes, by the names of their fields: `.save`, …
[[nodiscard]] std::vector<Output> outputs_of(const TrainingOptions& options);

/// How many ranks are servers; 0: ranks are all alike. Where that depends on hosts, of completed options
/// (TrainingSetup).
[[nodiscard]] int servers_of(const TrainingOptions& options) noexcept;
/// What the options let a GPU's libraries do.
[[nodiscard]] EngineRules engine_rules(const TrainingOptions& options) noexcept;

/// An option in words, so exact that equal words are equal values.
struct OptionInWords {
  std::string name, value;
  bool matters = false;  ///< the course of a training depends on it, apart from roundings: a checkpoint remembers it
};

/// All that must be the same on every rank (threads may differ, and a file's path: only whether it is given counts).
[[nodiscard]] std::vector<OptionInWords> in_words(const TrainingOptions& options);

}  // namespace ronda
