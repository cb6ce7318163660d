#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/data/batch_plan.hpp>
#include <ronda/data/dataset.hpp>
#include <ronda/layers/initializer.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/runtime/key_value/roles.hpp>
#include <ronda/runtime/strategy/platform.hpp>
#include <ronda/runtime/strategy/rank_picker.hpp>
#include <ronda/runtime/strategy/strategy_options.hpp>

namespace ronda {

class GradientExchange;
class Replica;

struct MirroredOptions {
  /// Everything at its default, for batches of `data` as `plan` cuts them.
  [[nodiscard]] static MirroredOptions for_data(const Dataset& data, const BatchPlan& plan);
  /// The same with the whole platform. Throws LogicError: see Platform.
  [[nodiscard]] MirroredOptions completed() const;

  std::vector<Field> fields;       ///< of the training data; `input` is what the model is planned for
  std::size_t batch_capacity = 0;  ///< rows of a rank's micro-batch
  std::size_t global_batch = 0;    ///< samples of a step over all ranks, for the scale of the loss gradient
  bool has_samples = true;         ///< of each full step; not where there are more ranks than samples
  std::size_t micro_batches = 1;   ///< a step; their gradients are summed before the one reduction

  Initializer initializer = Initializer::he_normal;
  std::uint64_t seed = 1;
  /// In which gradients of a half type are summed over the ranks, on the processor: that type, or float32, of which
  /// each rank keeps one more arena, so that `Parameter::gradient` stays the rank's own. Nothing: theirs.
  std::optional<DType> reduce_dtype = {};
  double clip_norm = 0;   ///< 2-norm that the mean gradient is clipped to; 0: no clipping
  double clip_value = 0;  ///< elements of the mean gradient are clipped to ± this; 0: no clipping. Not both
  double ema_decay = 0;   ///< of the parameters' average (TrainingState::with_average), which is evaluated; 0: none
  /// Check the reduced gradients, but those of frozen parameters, for numbers that are not finite, before each update.
  bool check_gradients = false;
  FusionOptions fusion;
  /// Which strategy, with its options. ParameterServer: a compression of `fusion` that is not automatic is of what
  /// workers push; asynchronous, `global_batch` is the batch of one worker.
  StrategyOptions strategy = {};
  /// An exchange of a program's own, instead of the strategy's: docs/extending.md. `replica` has its arenas, in this
  /// rank's memory, and outlives the exchange. Collective. Null: the strategy's.
  std::function<std::unique_ptr<GradientExchange>(const Communicator& communicator, Replica& replica)> make_exchange;
  /// The part of the data of a step, or of a test, that is this rank's. Throws as Roles.
  [[nodiscard]] Shard shard(const Communicator& communicator, bool of_step) const;
  /// Parameters from here on, in bytes, are updated by parts where all ranks are on one node (see NodeReduce): smaller
  /// ones stay in the caches, where that saves nothing.
  std::size_t node_update_bytes = std::size_t{16} << 20;
  int threads = 1;                  ///< of this rank
  std::size_t memory_limit = 0;     ///< bytes a rank, without what others keep (checkpoints, audits); 0: none
  std::size_t steps_in_flight = 1;  ///< on a GPU: that may be begun before the oldest of them is finished
  bool record_steps = true;         ///< on a GPU: replay the step from the third on; the bits are the same
  /// What to compute on. Primitives of a half type store activations, parameters and gradients in it; the parameters
  /// that are trained are float32.
  Platform platform;
  /// Datasets that a device is to keep, where it has room, so that batches may name their samples alone (BatchLoader,
  /// BatchContents::samples): see MirroredStrategy::keeps. They stay until the strategy goes, or forget_data.
  std::vector<const Dataset*> device_data;
  double device_data_share = 0.5;  ///< of the device's memory that is free beside the model, at most, for each dataset
  Picks picks;                     ///< what was chosen in an earlier run
  std::string plan_name;           ///< where `picks` are from, if nothing may be timed: see RankPicker
  std::function<ParameterGroup(std::string_view name)> group_of;  ///< null: one group
};

/// The part of the data that is this rank's. Not collective.
[[nodiscard]] Shard shard_of(const Communicator& communicator) noexcept;
/// The same where the last `servers` ranks have none; of a test, and of steps unless workers are asynchronous. Throws
/// as Roles.
[[nodiscard]] Shard shard_of(const Communicator& communicator, int servers);
/// Of steps, where each worker computes all samples of some.
[[nodiscard]] Shard shard_of(const Communicator& communicator, int servers, bool asynchronous);
/// The same where servers may stand anywhere.
[[nodiscard]] Shard shard_of(const Communicator& communicator, const Roles& roles, bool asynchronous = false);

}  // namespace ronda
