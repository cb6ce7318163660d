#pragma once
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <ronda/optim/optimizer.hpp>

namespace ronda {

/// Where a number is not given, the optimizer's usual one holds: see OptimizerRow.
struct OptimizerOptions {
  std::string name = "sgd";  ///< one of optimizer_names()
  std::optional<double> momentum = {}, beta1 = {}, beta2 = {}, epsilon = {}, alpha = {}, lr_decay = {}, rho = {},
                        momentum_decay = {}, initial_accumulator_value = {};
  bool centered = false;                    ///< rmsprop: by the variance, not by the mean square
  std::optional<double> weight_decay = {};  ///< L2, or decoupled: see OptimizerRow
};

/// A field of the options, by name, that an optimizer reads, and its usual value.
struct OptimizerField {
  std::string_view name;
  double usual = 0;
};

/// A name of an optimizer: see make_optimizer. A rule has its rows at the end of its file.
struct OptimizerRow {
  std::string_view name;
  double learning_rate;  ///< with which it learns small models well
  /// @param options  of this name, checked; all that the row reads is given
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions& options);
  std::array<OptimizerField, 5> reads = {};  ///< beside `weight_decay`
  double weight_decay = 0;                   ///< the usual one
  bool decoupled = false;                    ///< it shrinks parameters by itself, apart from the gradient
};
/// All there are.
[[nodiscard]] std::span<const OptimizerRow> optimizer_rows();
/// `sgd, momentum, nesterov, adam or adamw`.
[[nodiscard]] std::string optimizer_names();
/// Whether the optimizer of this name reads that field of the options. Throws as make_optimizer.
[[nodiscard]] bool optimizer_reads(std::string_view optimizer, std::string_view field);

/// The options with all numbers that their optimizer reads, but the weight decay. Throws as make_optimizer.
[[nodiscard]] OptimizerOptions completed(OptimizerOptions options);

/// Throws InputError for an unknown name, listing those there are, and for values that cannot work.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);

/// A rate with which the optimizer of this name learns small models well. Throws as make_optimizer.
[[nodiscard]] double default_learning_rate(std::string_view optimizer);

}  // namespace ronda
