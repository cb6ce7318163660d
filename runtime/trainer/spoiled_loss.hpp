#pragma once
#include <utility>

#include <ronda/layers/layer.hpp>
#include <ronda/layers/planner.hpp>
#include <ronda/runtime/checkpoint/faults.hpp>

namespace ronda {

/// A loss as it is, but for an injected fault of its gradient (FaultKind::flip_gradient), from which all gradients of
/// this rank follow. On the processor.
class SpoiledLoss final : public Loss {
 public:
  /// `loss` outlives this object.
  SpoiledLoss(Loss& loss, Faults faults) : loss_(loss), faults_(std::move(faults)) {}

  [[nodiscard]] bool runs_on_any_device() const noexcept override { return loss_.runs_on_any_device(); }
  [[nodiscard]] Metric metric() const override { return loss_.metric(); }
  void bind(const Bindings& bindings) override { loss_.bind(bindings); }
  const Tensor& forward_backward(const Tensor& outputs, const Tensor& target, const Pass& pass) override;
  void forward(const Tensor& outputs, const Tensor& target, const Pass& pass) override {
    loss_.forward(outputs, target, pass);
  }

 protected:
  void plan(const TensorDesc& outputs, Planner& planner) override { planner.plan(loss_, outputs); }

 private:
  Loss& loss_;
  Faults faults_;
};

}  // namespace ronda
