#pragma once
#include <memory>

#include <ronda/core/metric.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda {

/// A loss function: compares outputs with targets. It holds no memory, so one object may serve several models.
class Loss {
 public:
  virtual ~Loss() = default;

  /// Whether it uses only the primitives, and so runs on every device that they support. A loss that accesses elements
  /// itself runs only on the processor.
  [[nodiscard]] virtual bool runs_on_any_device() const noexcept { return false; }

  /// The metric that `run` also computes; none by default.
  [[nodiscard]] virtual Metric metric() const { return {}; }

  /// Makes the loss operation for outputs of this description. Its `run` adds the weighted sums of losses, weights and
  /// metrics to `pass.control`, and writes the gradient of (loss sum × pass.loss_scale × *pass.more_scale) with respect
  /// to the outputs. Sums, not means: the optimizer divides once, by the sum over all ranks. Throws InputError for
  /// outputs that the loss does not accept.
  /// @param outputs  plain; float32 on the processor, the primitives' type on other devices
  [[nodiscard]] virtual std::unique_ptr<LossOperation> make(const TensorDesc& outputs,
                                                            Primitives& primitives) const = 0;
};

}  // namespace ronda
