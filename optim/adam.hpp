#pragma once
#include <ronda/optim/optimizer.hpp>

namespace ronda {

/// Whether weight decay is part of the gradient (L2 regularisation, Adam) or apart from it (AdamW: Loshchilov and
/// Hutter, "Decoupled weight decay regularization", ICLR 2019).
enum class Decay : std::uint8_t { in_gradient, decoupled };

/// Adam (Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015) as PyTorch's torch.optim.Adam and
/// AdamW compute it, in update t:
///
///     in_gradient: g += decay · p;  decoupled: p *= 1 - rate · decay
///     m += (1 - beta1) · (g - m);  v = beta2 · v + (1 - beta2) · g²
///     p -= rate / (1 - beta1^t) · m / (√v / √(1 - beta2^t) + epsilon)
class Adam final : public Optimizer {
 public:
  /// @param epsilon  more than 0, so that an element that never had a gradient (padding) stays
  Adam(double beta1, double beta2, double epsilon, Decay decay, double weight_decay)
      : Optimizer(weight_decay), beta1_(beta1), beta2_(beta2), epsilon_(epsilon), decay_(decay) {}
  [[nodiscard]] std::string_view name() const noexcept override {
    return decay_ == Decay::decoupled ? "adamw" : "adam";
  }
  [[nodiscard]] std::span<const std::string_view> states() const noexcept override;
  [[nodiscard]] rules::Hyperparameters hyperparameters() const noexcept override;

 private:
  [[nodiscard]] bool update(const ArenaPart& part, const rules::Scalars& scalars) const noexcept override;

  double beta1_, beta2_, epsilon_;
  Decay decay_;
};

}  // namespace ronda
