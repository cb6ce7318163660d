#pragma once
#include <ronda/optim/optimizer.hpp>

namespace ronda {

/// p -= rate · (g + decay · p). PyTorch's torch.optim.SGD.
class Sgd final : public Optimizer {
 public:
  explicit Sgd(double weight_decay) : Optimizer(weight_decay) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "sgd"; }
  [[nodiscard]] std::span<const std::string_view> states() const noexcept override { return {}; }
  [[nodiscard]] rules::Hyperparameters hyperparameters() const noexcept override;

 private:
  [[nodiscard]] bool update(const ArenaPart& part, const rules::Scalars& scalars) const noexcept override;
};

/// PyTorch's torch.optim.SGD with momentum, without dampening (Sutskever et al., "On the importance of initialization
/// and momentum in deep learning", ICML 2013, with the rate outside of the velocity):
///
///     g += decay · p;  v = momentum · v + g;  p -= rate · v;  nesterov: p -= rate · (g + momentum · v)
///
/// PyTorch starts with v = g; so do we, since v is 0 before the first step.
class Momentum final : public Optimizer {
 public:
  Momentum(double momentum, bool nesterov, double weight_decay)
      : Optimizer(weight_decay), momentum_(momentum), nesterov_(nesterov) {}
  [[nodiscard]] std::string_view name() const noexcept override { return nesterov_ ? "nesterov" : "momentum"; }
  [[nodiscard]] std::span<const std::string_view> states() const noexcept override;
  [[nodiscard]] rules::Hyperparameters hyperparameters() const noexcept override;

 private:
  [[nodiscard]] bool update(const ArenaPart& part, const rules::Scalars& scalars) const noexcept override;

  double momentum_;
  bool nesterov_;
};

}  // namespace ronda
