#pragma once
#include <utility>

#include <ronda/layers/loss.hpp>
#include <ronda/runtime/checkpoint/faults.hpp>

namespace ronda {

/// Wraps a loss and injects a fault into its gradient (FaultKind::flip_gradient), which affects all gradients of this
/// rank. CPU only.
class SpoiledLoss final : public Loss {
 public:
  /// `loss` must outlive this object.
  SpoiledLoss(const Loss& loss, Faults faults) : loss_(loss), faults_(std::move(faults)) {}

  [[nodiscard]] bool runs_on_any_device() const noexcept override { return loss_.runs_on_any_device(); }
  [[nodiscard]] Metric metric() const override { return loss_.metric(); }
  [[nodiscard]] std::unique_ptr<LossOperation> make(const TensorDesc& outputs, Primitives& primitives) const override;

 private:
  const Loss& loss_;
  Faults faults_;
};

}  // namespace ronda
