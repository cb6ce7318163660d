#pragma once
#include <utility>

#include <ronda/layers/loss.hpp>
#include <ronda/runtime/checkpoint/faults.hpp>

namespace ronda {

/// A loss as it is, but for an injected fault of its gradient (FaultKind::flip_gradient), from which all gradients of
/// this rank follow. On the processor.
class SpoiledLoss final : public Loss {
 public:
  /// `loss` outlives this object.
  SpoiledLoss(const Loss& loss, Faults faults) : loss_(loss), faults_(std::move(faults)) {}

  [[nodiscard]] bool runs_on_any_device() const noexcept override { return loss_.runs_on_any_device(); }
  [[nodiscard]] Metric metric() const override { return loss_.metric(); }
  [[nodiscard]] std::unique_ptr<LossOperation> make(const TensorDesc& outputs, Primitives& primitives) const override;

 private:
  const Loss& loss_;
  Faults faults_;
};

}  // namespace ronda
