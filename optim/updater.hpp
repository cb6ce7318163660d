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

/// A loss scale that follows the gradients, for those of float16. They are multiplied with it, so that small ones are
/// not 0; a step in which one of them then is infinite is not applied, and the scale is halved; after so many steps
/// without it is doubled: PyTorch's GradScaler. Whole numbers, exact in a float.
struct LossScale {
  float scale = 0x1p16F;
  float good_steps = 0;  ///< since it last changed

  static constexpr float interval = 2000;  ///< good steps
  /// Where even this is too much it is not the scale that is to blame: the gradients are not finite.
  static constexpr float smallest = 0x1p-13F;
};

/// The decision about a step, and its result.
struct UpdateOutcome {
  std::uint64_t updates = 0;     ///< that changed the parameters, this one included
  double learning_rate = 0;      ///< of this step
  double gradient_factor = 0;    ///< sums of gradients times this are the mean, clipped; where the update was applied
  float gradient_limit = 0;      ///< sums of gradients are clipped to ± this first; infinite without clip_value
  double gradient_norm = 0;      ///< of the mean, before clipping; 0 without clipping, and where nothing is applied
  std::uint32_t applied = 0;     ///< 0: there was no weight, or something was not finite
  std::uint32_t finite = 0;      ///< 0: the loss, or a gradient where they are checked, was not finite
  std::uint32_t spoiled = 0;     ///< 1: the update was applied, and a parameter or a state of it is not finite
  std::uint32_t overflowed = 0;  ///< 1: a gradient was beyond float16, and the loss scale is smaller from here on
  float loss_scale = 1;          ///< that follows the gradients, for the next step; 1 where none does
};

/// The arenas that layers read and write. They have the length and the order of the optimizer's float32 arena: element
/// i of each belongs to one another.
struct LayerArenas {
  const std::byte* gradients = nullptr;
  DType dtype = DType::float32;  ///< of these
  std::byte* values = nullptr;   ///< the values once more, rounded to a half type; null where that is float32
  /// Of these: that of the gradients, unless those are float32; then this is said, and is for the processor.
  DType layer_dtype = DType::float32;
};

/// Where other ranks have other parts of the model (a pipeline's stages): adds up numbers of all parts.
class SumOverParts {
 public:
  /// The sum of all parts' `mine`, the same bits on all of them. Collective over them; not a number where one is not.
  virtual double sum(double mine) = 0;

 protected:
  ~SumOverParts() = default;
};

struct UpdaterOptions {
  Schedule schedule;
  float loss_scale = 1;   ///< that the loss gradient was multiplied with
  double clip_norm = 0;   ///< 2-norm that the mean gradient is clipped to; 0: no clipping
  double clip_value = 0;  ///< elements of the mean gradient are clipped to ± this; 0: no clipping. Not both
  /// Check all gradients, but those of frozen parameters, for numbers that are not finite.
  bool check_gradients = false;
  float* average = nullptr;  ///< as many as the values, in their memory: see Updater::average; null: none is kept
  double average_decay = 0;
  /// Elements of the average that this updater keeps, where it shares the values with others; for float32 on the
  /// processor. Nothing: all.
  std::optional<Range> averaged = {};
  LossScale* more_scale = nullptr;  ///< in the memory of the values, to use and to keep up to date; null: 1
  SumOverParts* parts = nullptr;    ///< on the processor, of float32: the arenas are a part's; null: they are the whole
  /// On the processor, of float32: the values whose sums of gradients are here, and these. Others are not read; `parts`
  /// then adds up over the ranks that have the rest. Nothing: those of all, in the arena.
  std::optional<ArenaRange> sums = {};

  [[nodiscard]] bool checks_gradients() const noexcept { return check_gradients || more_scale != nullptr; }
  [[nodiscard]] bool needs_norm() const noexcept { return clip_norm > 0 || checks_gradients(); }
};

/// Decides about a step and applies it, where the values lie. The decision: the mean's factor from the step's sums, the
/// gradients' norm, clipping, the check for numbers that are not finite, the loss scale, the learning rate from the
/// number of updates. It rests on reduced sums alone, so ranks that have the same sums decide the same, without a
/// message. Nothing in it needs the host: on a device a step can be recorded once and replayed.
class Updater {
 public:
  virtual ~Updater() = default;
  /// Decides about a step. Nothing is to be applied where `total` has no weight or its loss is not finite, or a checked
  /// gradient is not. In the order of the stream; allocates nothing.
  /// @param total  in the memory of the values
  virtual void decide(const StepControl* total, Stream& stream) = 0;
  /// Whether `decide` reads the sums of gradients of the whole arena.
  [[nodiscard]] virtual bool reads_all_gradients() const noexcept = 0;
  /// Applies the decision: updates `range` of values and states from sums of gradients, and the layers' copy of these
  /// values. Reads no others. In the order of the stream; allocates nothing.
  /// @param range  begins at a multiple of 16 elements; of the rows of sparse tables in it, those that are touched
  virtual void apply(const ArenaRange& range, Stream& stream) = 0;
  /// One after the other.
  void apply(std::span<const ArenaRange> ranges, Stream& stream) {
    for (const ArenaRange& range : ranges) apply(range, stream);
  }
  /// Both, where nobody else reads or writes these values.
  void step(const ArenaRange& range, const StepControl* total, Stream& stream) {
    decide(total, stream);
    apply(range, stream);
  }
  /// With UpdaterOptions::average, after all values have been updated: brings their exponential moving average forward,
  ///
  ///     average += (1 - average_decay) · (value - average)
  ///
  /// where the step was applied and left only finite numbers. The first update's values are the first average, as in
  /// PyTorch's AveragedModel. In the order of the stream; allocates nothing.
  virtual void average(Stream& stream) = 0;
  /// Exchanges the values with their average. In the order of the stream.
  virtual void swap_average(Stream& stream) = 0;
  /// Rounds the values for the layers again, after somebody else wrote them. In the order of the stream.
  virtual void round_values(Stream& stream) = 0;
  /// Of the last step that the stream has come to; in the memory of the values.
  [[nodiscard]] virtual UpdateOutcome* outcome() noexcept = 0;
  /// For a training that goes on from a checkpoint. Waits for the stream.
  virtual void set_updates(std::uint64_t updates, Stream& stream) = 0;
  /// From the next update on: the rates of `schedule`, whose step 0 is that update. Waits for the stream. Throws as
  /// the updater's making does.
  virtual void set_schedule(const Schedule& schedule, Stream& stream) = 0;
  /// From the next update on: all rates times `factor`, whatever the schedule. Waits for the stream.
  virtual void set_rate_factor(double factor, Stream& stream) = 0;
  /// From the next update on: whether the zeros of parameters that are pruned (ParameterGroup::pruned) stay zero.
  /// Waits for the stream.
  virtual void set_keeps_zeros(bool keeps, Stream& stream) = 0;
};

/// Makes an updater.
/// @param optimizer  gives the rule; bound to `bindings` before, and outlives the processor's updater
/// @param bindings   as for Optimizer::bind; segments start at multiples of 16 elements
/// @param layers     of the same length as the values, `count` elements
/// Throws as Optimizer::bind.
using MakeUpdater = std::function<std::unique_ptr<Updater>(
    DeviceContext& context, Optimizer& optimizer, const OptimizerBindings& bindings, const LayerArenas& layers,
    std::size_t count, const UpdaterOptions& options, Stream& stream)>;

/// On the processor.
std::unique_ptr<Updater> make_host_updater(DeviceContext& context, Optimizer& optimizer,
                                           const OptimizerBindings& bindings, const LayerArenas& layers,
                                           std::size_t count, const UpdaterOptions& options, Stream& stream);
/// On a GPU. Bits do not depend on how kernels run. Throws InputError in a build without CUDA, and for a schedule of
/// more rates than a table is for.
std::unique_ptr<Updater> make_cuda_updater(DeviceContext& context, Optimizer& optimizer,
                                           const OptimizerBindings& bindings, const LayerArenas& layers,
                                           std::size_t count, const UpdaterOptions& options, Stream& stream);

}  // namespace ronda
