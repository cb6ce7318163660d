#pragma once
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <ronda/optim/optimizer.hpp>

namespace ronda {

/// Options of all optimizers. A number that is not given has the optimizer's default: see OptimizerRow.
struct OptimizerOptions {
  std::string name = "sgd";  ///< one of optimizer_names()
  std::optional<double> momentum = {}, beta1 = {}, beta2 = {}, epsilon = {}, alpha = {}, lr_decay = {}, rho = {},
                        momentum_decay = {}, initial_accumulator_value = {};
  bool centered = false;                    ///< rmsprop: divide by the root of the variance, not of the mean square
  std::optional<double> weight_decay = {};  ///< L2 or decoupled: see OptimizerRow
};

/// A field of the options that an optimizer reads, and its default.
struct OptimizerField {
  std::string_view name;
  double usual = 0;
};

/// An optimizer by name: see make_optimizer. The rows of a rule are at the end of its source file.
struct OptimizerRow {
  std::string_view name;
  double learning_rate;  ///< default, suitable for small models
  /// @param options  for this name, checked; all fields that the row reads are set
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions& options);
  std::array<OptimizerField, 5> reads = {};  ///< fields in addition to `weight_decay`
  double weight_decay = 0;                   ///< default
  bool decoupled = false;                    ///< decay is applied to the parameters directly, not through the gradient
};
/// The rows of all optimizers.
[[nodiscard]] std::span<const OptimizerRow> optimizer_rows();
/// `sgd, momentum, nesterov, adam or adamw`.
[[nodiscard]] std::string optimizer_names();
/// Whether the optimizer of this name reads that field of the options. Throws as make_optimizer.
[[nodiscard]] bool optimizer_reads(std::string_view optimizer, std::string_view field);

/// The options, with defaults for all numbers that the optimizer reads, except the weight decay. Throws as
/// make_optimizer.
[[nodiscard]] OptimizerOptions completed(OptimizerOptions options);

/// Throws InputError for an unknown name (listing the known names) and for invalid values.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options);

/// The default learning rate of an optimizer, suitable for small models. Throws as make_optimizer.
[[nodiscard]] double default_learning_rate(std::string_view optimizer);

}  // namespace ronda
