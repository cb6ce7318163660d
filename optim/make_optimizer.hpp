#pragma once
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <ronda/optim/optimizer.hpp>

namespace ronda {

struct OptimizerOptions {
  std::string name = "sgd";  ///< one of optimizer_names()
  double momentum = 0.9;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  /// L2 for all but adamw, which decouples it; where not given, 0.01 for adamw and 0 for the others.
  std::optional<double> weight_decay = {};
};

/// A name of an optimizer: see make_optimizer. A rule has its rows at the end of its file.
struct OptimizerRow {
  std::string_view name;
  double learning_rate;  ///< with which it learns small models well
  /// @param options  of this name, checked
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions& options);
  std::array<std::string_view, 3> reads = {};  ///< fields of the options, beside `weight_decay`
};
/// All there are.
[[nodiscard]] std::span<const OptimizerRow> optimizer_rows();
/// `sgd, momentum, nesterov, adam or adamw`.
[[nodiscard]] std::string optimizer_names();
/// Whether the optimizer of this name reads that field of the options. Throws as make_optimizer.
[[nodiscard]] bool optimizer_reads(std::string_view optimizer, std::string_view field);

/// Throws InputError for an unknown name, listing those there are, and for values that cannot work.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);

/// A rate with which the optimizer of this name learns small models well. Throws as make_optimizer.
[[nodiscard]] double default_learning_rate(std::string_view optimizer);

}  // namespace ronda
