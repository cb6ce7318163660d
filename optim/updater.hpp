#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include <ronda/core/device_context.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/schedule.hpp>

namespace ronda {

/// A dynamic loss scale for float16 gradients, like PyTorch's GradScaler. Gradients are multiplied by it, so that small
/// ones do not become 0. A step in which a scaled gradient is infinite is not applied, and the scale is halved. After
/// `interval` steps without an overflow the scale is doubled. All values are exact in a float.
struct LossScale {
  float scale = 0x1p16F;
  float good_steps = 0;  ///< since the last change of the scale

  static constexpr float interval = 2000;  ///< steps without overflow before doubling
  /// If gradients are not finite even with this scale, the scale is not the cause: the step counts as not finite.
  static constexpr float smallest = 0x1p-13F;
};

/// The decision about a step, and its result.
struct UpdateOutcome {
  std::uint64_t updates = 0;     ///< applied updates, including this one
  double learning_rate = 0;      ///< learning rate of this step
  double gradient_factor = 0;    ///< sum of gradients times this: the mean gradient, clipped; valid if applied
  float gradient_limit = 0;      ///< sums of gradients are clipped to ± this first; infinite without clip_value
  double gradient_norm = 0;      ///< 2-norm of the mean, before clipping; 0 without clipping, or if not applied
  std::uint32_t applied = 0;     ///< 0: the total weight was 0, or a number was not finite
  std::uint32_t finite = 0;      ///< 0: the loss, or a checked gradient, was not finite
  std::uint32_t spoiled = 0;     ///< 1: the update was applied, and an updated parameter or state is not finite
  std::uint32_t overflowed = 0;  ///< 1: a gradient overflowed float16, and the loss scale was halved
  float loss_scale = 1;          ///< dynamic loss scale of the next step; 1 without one
};

/// The arenas that layers read and write. They have the length and order of the optimizer's float32 arena: element i of
/// every arena belongs to the same parameter element.
struct LayerArenas {
  const std::byte* gradients = nullptr;
  DType dtype = DType::float32;  ///< type of the gradients
  std::byte* values = nullptr;   ///< the values rounded to `layer_dtype`; null if layers read float32
  /// Type of `values`: the gradients' type. If gradients are float32 it may be a half type, on the processor only.
  DType layer_dtype = DType::float32;
};

/// Sums numbers over the parts of a model that is divided over ranks (the stages of a pipeline).
class SumOverParts {
 public:
  /// The sum of `mine` over all parts, with the same bits on all. Collective over the parts. NaN if one is NaN.
  virtual double sum(double mine) = 0;

 protected:
  ~SumOverParts() = default;
};

struct UpdaterOptions {
  Schedule schedule;
  float loss_scale = 1;   ///< static factor of the loss gradient
  double clip_norm = 0;   ///< 2-norm that the mean gradient is clipped to; 0: no clipping
  double clip_value = 0;  ///< elements of the mean gradient are clipped to ± this; 0: no clipping. Not both
  /// Check that all gradients, except those of frozen parameters, are finite.
  bool check_gradients = false;
  float* average = nullptr;  ///< arena of the average, with the length and device of the values: see Updater::average;
                             ///< null: no average
  double average_decay = 0;
  /// Elements of the average that this updater computes, if several updaters share the values; float32 on the processor
  /// only. `nullopt`: all.
  std::optional<Range> averaged = {};
  LossScale* more_scale = nullptr;  ///< dynamic loss scale, on the device of the values; used and updated; null: 1
  SumOverParts* parts = nullptr;    ///< float32 on the processor: the arenas are one part of the model; null: the whole
  /// Float32 on the processor only: the range whose gradient sums this rank has. Other sums are not read, and `parts`
  /// then sums over the ranks that have the rest. `nullopt`: all sums, in the arena.
  std::optional<ArenaRange> sums = {};

  [[nodiscard]] bool checks_gradients() const noexcept { return check_gradients || more_scale != nullptr; }
  [[nodiscard]] bool needs_norm() const noexcept { return clip_norm > 0 || checks_gradients(); }
};

/// Decides about a step and applies it, on the device of the values. The decision covers the factor of the mean, the
/// gradients' norm, clipping, the check for finite numbers, the loss scale, and the learning rate from the number of
/// updates. It depends only on reduced sums, so ranks with the same sums decide the same without communication. It does
/// not need the host: on a device a step can be recorded once and replayed.
class Updater {
 public:
  virtual ~Updater() = default;
  /// Decides about a step. The step is not applied if the weight of `total` is 0, or its loss or a checked gradient is
  /// not finite. In the order of the stream; allocates nothing.
  /// @param total  on the device of the values
  virtual void decide(const StepControl* total, Stream& stream) = 0;
  /// Whether `decide` reads the sums of gradients of the whole arena.
  [[nodiscard]] virtual bool reads_all_gradients() const noexcept = 0;
  /// Applies the decision: updates values and states in `range` from the sums of gradients, and the layers' copy of the
  /// values. Accesses no elements outside of `range`. In the order of the stream; allocates nothing.
  /// @param range  begins at a multiple of 16 elements; in sparse tables only the touched rows are updated
  virtual void apply(const ArenaRange& range, Stream& stream) = 0;
  /// Applies the ranges in order.
  void apply(std::span<const ArenaRange> ranges, Stream& stream) {
    for (const ArenaRange& range : ranges) apply(range, stream);
  }
  /// Decides and applies, for a caller whose values no other updater reads or writes.
  void step(const ArenaRange& range, const StepControl* total, Stream& stream) {
    decide(total, stream);
    apply(range, stream);
  }
  /// With UpdaterOptions::average, after all values have been updated: updates their exponential moving average,
  ///
  ///     average += (1 - average_decay) · (value - average)
  ///
  /// if the step was applied and all results are finite. The values after the first update are the first average, as in
  /// PyTorch's AveragedModel. In the order of the stream; allocates nothing.
  virtual void average(Stream& stream) = 0;
  /// Swaps the values and their average. In the order of the stream.
  virtual void swap_average(Stream& stream) = 0;
  /// Rounds the values for the layers again, after they were changed from outside. In the order of the stream.
  virtual void round_values(Stream& stream) = 0;
  /// The outcome of the last step that the stream has executed; on the device of the values.
  [[nodiscard]] virtual UpdateOutcome* outcome() noexcept = 0;
  /// Sets the number of updates, to resume from a checkpoint. Waits for the stream.
  virtual void set_updates(std::uint64_t updates, Stream& stream) = 0;
  /// From the next update on, uses the rates of `schedule`, whose step 0 is that update. Waits for the stream. Throws
  /// as MakeUpdater.
  virtual void set_schedule(const Schedule& schedule, Stream& stream) = 0;
  /// From the next update on, multiplies all rates by `factor`, with any schedule. Waits for the stream.
  virtual void set_rate_factor(double factor, Stream& stream) = 0;
  /// From the next update on, sets whether zeros of pruned parameters (ParameterGroup::pruned) stay zero. Waits for the
  /// stream.
  virtual void set_keeps_zeros(bool keeps, Stream& stream) = 0;
};

/// Throws InputError if gradients are clipped by norm and by value.
void refuse_both_clips(double clip_norm, double clip_value);

/// Makes an updater.
/// @param optimizer  has the rule; already bound to `bindings`; outlives an updater on the processor
/// @param bindings   as for Optimizer::bind; segments start at multiples of 16 elements
/// @param layers     arenas of `count` elements, like the values
/// Throws as Optimizer::bind.
using MakeUpdater = std::function<std::unique_ptr<Updater>(
    DeviceContext& context, Optimizer& optimizer, const OptimizerBindings& bindings, const LayerArenas& layers,
    std::size_t count, const UpdaterOptions& options, Stream& stream)>;

/// An updater on the processor.
std::unique_ptr<Updater> make_host_updater(DeviceContext& context, Optimizer& optimizer,
                                           const OptimizerBindings& bindings, const LayerArenas& layers,
                                           std::size_t count, const UpdaterOptions& options, Stream& stream);
/// An updater on a GPU. The bits do not depend on the scheduling of kernels. Throws InputError in a build without CUDA,
/// and for a schedule with more rates than the table allows (Schedule::rates).
std::unique_ptr<Updater> make_cuda_updater(DeviceContext& context, Optimizer& optimizer,
                                           const OptimizerBindings& bindings, const LayerArenas& layers,
                                           std::size_t count, const UpdaterOptions& options, Stream& stream);

}  // namespace ronda
