#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <ronda/core/device_context.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/optim/optimizer.hpp>

namespace ronda {

/// A loss scale that follows the gradients, for those of float16, in a device's memory. They are multiplied with it, so
/// that small ones are not 0; a step in which one of them then is infinite is not applied, and the scale is halved;
/// after so many steps without it is doubled: PyTorch's GradScaler. Whole numbers, exact in a float.
struct LossScale {
  float scale = 0x1p16F;
  float good_steps = 0;  ///< since it last changed

  static constexpr float interval = 2000;  ///< good steps
  /// Where even this is too much it is not the scale that is to blame: the gradients are not finite.
  static constexpr float smallest = 0x1p-13F;
};

/// What a GPU has decided about a step, in its own memory.
struct DeviceOutcome {
  std::uint64_t updates;     ///< that changed the parameters, this one included
  double learning_rate;      ///< of this step
  double gradient_norm;      ///< of the mean, before clipping; 0 without clipping, and where `applied` is
  std::uint32_t applied;     ///< 0: there was no weight, or something was not finite
  std::uint32_t finite;      ///< 0: the loss, or a gradient where they are looked at, was not finite
  std::uint32_t spoiled;     ///< 1: the update was applied, and a parameter or a state of it is not finite
  std::uint32_t overflowed;  ///< 1: a gradient was beyond float16, and the loss scale is smaller from here on
  float loss_scale;          ///< that follows the gradients, for the next step; 1 where none does
};

/// What layers read and write, all of one length and in one order with the arena of float32 values that the optimizer
/// keeps: element i of each belongs to one another.
struct LayerArenas {
  const std::byte* gradients = nullptr;
  DType dtype = DType::float32;  ///< of these
  std::byte* values = nullptr;   ///< the values once more, rounded to a half type; null where that is float32
};

struct DeviceUpdateOptions {
  float loss_scale = 1;          ///< that the loss gradient was multiplied with
  double clip_norm = 0;          ///< 0: no clipping
  bool check_gradients = false;  ///< look for what is not finite at all gradients but those of frozen parameters
  /// The learning rate of update 0, 1, …; the last one holds from there on. Copied.
  std::span<const double> rates;
  LossScale* more_scale = nullptr;  ///< in the device's memory, to use and to keep up to date; null: 1

  [[nodiscard]] bool looks_at_gradients() const noexcept { return check_gradients || more_scale != nullptr; }
  [[nodiscard]] bool needs_norm() const noexcept { return clip_norm > 0 || looks_at_gradients(); }
};

/// The update of a whole arena by the device that holds it, decided there too: from the step's sums it takes the mean's
/// factor, from the gradients their norm, from its own count of updates the learning rate. So the host never has to
/// look before it goes on, and a step can be recorded once and replayed. Bits do not depend on how kernels run, and the
/// decision rests on reduced sums alone: ranks that have the same come to the same, without a message.
class DeviceUpdate {
 public:
  virtual ~DeviceUpdate() = default;
  /// Updates values and states from sums of gradients, and what layers read from the values; or nothing where `total`
  /// (in the device's memory) says that there was no weight or the loss was not finite, or a gradient that is looked at
  /// is not. Allocates nothing, waits for nothing.
  virtual void step(const StepControl* total, Stream& stream) = 0;
  /// Makes what layers read of the values, after somebody else wrote these. In the order of the stream.
  virtual void round_values(Stream& stream) = 0;
  /// In the device's memory; of the last step that the stream has come to.
  [[nodiscard]] virtual const DeviceOutcome* outcome() const noexcept = 0;
  /// For a training that goes on from a checkpoint. In the order of the stream.
  virtual void set_updates(std::uint64_t updates, Stream& stream) = 0;
};

/// Makes the update of a device.
/// @param optimizer  gives the rule
/// @param bindings   as for Optimizer::bind, with pointers of the device; segments start at multiples of 16 elements
/// @param layers     of the same length as the values, `count` elements
/// Throws as Optimizer::bind, and InputError in a build without CUDA.
std::unique_ptr<DeviceUpdate> make_cuda_update(DeviceContext& context, const Optimizer& optimizer,
                                               const OptimizerBindings& bindings, const LayerArenas& layers,
                                               std::size_t count, const DeviceUpdateOptions& options, Stream& stream);
using MakeDeviceUpdate = std::function<decltype(make_cuda_update)>;

}  // namespace ronda
