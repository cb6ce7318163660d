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
#include <ronda/runtime/strategy/replica/platform.hpp>
#include <ronda/runtime/strategy/replica/rank_picker.hpp>
#include <ronda/runtime/strategy/step/exchange_plan.hpp>

namespace ronda {

/// The batches of a step.
struct StepShape {
  std::vector<Field> fields;       ///< fields of the training data; the model is planned for `input`
  std::size_t batch_capacity = 0;  ///< rows per micro-batch on each rank
  std::size_t global_batch = 0;    ///< samples per step over all ranks, which scale the loss gradient
  bool has_samples = true;  ///< this rank has samples in each full step; false if there are more ranks than samples
  std::size_t micro_batches = 1;  ///< per step; their gradients are summed before the one reduction
};

/// Datasets that a device keeps if it has room, so that batches need only the numbers of their samples (BatchLoader,
/// BatchContents::samples): see Strategy::keeps.
struct DeviceData {
  std::vector<const Dataset*> sets;  ///< must live until the strategy is destroyed, or until forget_data
  double share = 0.5;                ///< maximum share per dataset of the device memory that the model leaves free
};

/// Options that all strategies share.
struct MirroredOptions {
  /// Default options for batches of `data` as cut by `plan`.
  [[nodiscard]] static MirroredOptions for_data(const Dataset& data, const BatchPlan& plan);
  /// These options with a complete platform. Throws LogicError, see Platform.
  [[nodiscard]] MirroredOptions completed() const;

  StepShape shape;

  Initializer initializer = Initializer::he_normal;
  std::uint64_t seed = 1;
  /// Type in which half-precision gradients are summed over the ranks, on the CPU: their own type, or float32. For
  /// float32 each rank keeps one more arena, and `Parameter::gradient` stays the rank's own. Nullopt: their own type.
  std::optional<DType> reduce_dtype = {};
  double clip_norm = 0;   ///< maximum 2-norm of the mean gradient; 0: no clipping
  double clip_value = 0;  ///< maximum absolute value of a gradient element; 0: no clipping. Excludes clip_norm
  double ema_decay = 0;   ///< decay of the evaluated average (TrainingState::with_average); 0: none
  /// Check the reduced gradients, except those of frozen parameters, for non-finite numbers before each update.
  bool check_gradients = false;
  FusionOptions fusion;
  /// Strategy and its options; empty: Mirrored. With ParameterServer, a compression in `fusion` that is not automatic
  /// applies to the gradients that workers push; if asynchronous, `global_batch` is the batch of one worker. A custom
  /// exchange is OwnExchange.
  StrategyChoice strategy = {};
  /// Parameters of at least this many bytes are updated by parts if all ranks are on one node (see NodeReduce). Smaller
  /// ones stay in the caches, so partial updates would save nothing.
  std::size_t node_update_bytes = std::size_t{16} << 20;
  int threads = 1;                  ///< threads of this rank
  std::size_t memory_limit = 0;     ///< bytes per rank, not counting checkpoints and audits; 0: no limit
  std::size_t steps_in_flight = 1;  ///< on a GPU: steps that may be started before the oldest is finished
  bool record_steps = true;         ///< on a GPU: replay the step from the third on; the bits are the same
  /// Platform to compute on. Primitives of a half type store activations, parameters and gradients in it; the trained
  /// parameters are float32.
  Platform platform;
  DeviceData device_data;
  Picks picks;            ///< choices of an earlier run
  std::string plan_name;  ///< source of `picks`, if timing is not allowed: see RankPicker
  std::function<ParameterGroup(std::string_view name)> group_of;  ///< null: one group
};

/// This rank's part of the data. Not collective.
[[nodiscard]] Shard shard_of(const Communicator& communicator) noexcept;

}  // namespace ronda
