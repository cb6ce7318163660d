#pragma once
#include <memory>

#include <ronda/core/metric.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda {

/// What a model is trained on: compares outputs with targets. It holds no memory: one loss may serve several models.
class Loss {
 public:
  virtual ~Loss() = default;

  /// Whether it computes by the primitives alone, and so wherever they do. One that reads elements itself, as a user's
  /// own may, is for the processor.
  [[nodiscard]] virtual bool runs_on_any_device() const noexcept { return false; }

  /// What it measures beside the loss; none unless it says so.
  [[nodiscard]] virtual Metric metric() const { return {}; }

  /// The loss of outputs of this description. Its `run` adds the weighted sums of losses, weights and metrics to
  /// `pass.control`, and writes the gradient of (loss sum × pass.loss_scale × *pass.more_scale) with respect to the
  /// outputs. Sums, not means: the mean is taken once, over all ranks, by the optimizer. Throws InputError for outputs
  /// that it does not take.
  /// @param outputs  plain; in float32 on the processor, in the primitives' type elsewhere
  [[nodiscard]] virtual std::unique_ptr<LossOperation> make(const TensorDesc& outputs,
                                                            Primitives& primitives) const = 0;
};

}  // namespace ronda
