#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <ronda/optim/optimizer.hpp>

namespace ronda {

struct OptimizerOptions {
  std::string name = "sgd";                           ///< sgd, momentum, nesterov, adam, adamw
  double momentum = 0.9;                              ///< of momentum and nesterov
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  ///< of adam and adamw
  /// L2 for all but adamw, which decouples it; where not given, 0.01 for adamw and 0 for the others.
  std::optional<double> weight_decay = {};
};

/// Throws InputError for an unknown name, listing those there are, and for values that cannot work.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);

/// A rate with which the optimizer of this name learns small models well. Throws as make_optimizer.
[[nodiscard]] double default_learning_rate(std::string_view optimizer);

}  // namespace ronda
