#include <ronda/core/error.hpp>
#include <ronda/core/listed.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/muon.hpp>
#include <ronda/optim/rules.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace ronda {
namespace {

const OptimizerRow& row_of(std::string_view name) {
  const auto& rows = optimizer_rows();
  const auto found = std::ranges::find(rows, name, &OptimizerRow::name);
  if (found != rows.end()) return *found;
  throw InputError("'" + std::string(name) + "' is not an optimizer: expected " + optimizer_names());
}

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The numbers among the options: low ≤ value < high.
struct NumberRange {
  std::string_view name;
  std::optional<double> OptimizerOptions::*value;
  double low = 0, high = 1;
};
constexpr std::array numbers{
    NumberRange{"momentum", &OptimizerOptions::momentum},
    NumberRange{"beta1", &OptimizerOptions::beta1},
    NumberRange{"beta2", &OptimizerOptions::beta2},
    NumberRange{"epsilon", &OptimizerOptions::epsilon, std::numeric_limits<float>::min(), infinity},
    NumberRange{"alpha", &OptimizerOptions::alpha},
    NumberRange{"lr_decay", &OptimizerOptions::lr_decay, 0, infinity},
    NumberRange{"initial_accumulator_value", &OptimizerOptions::initial_accumulator_value, 0, infinity},
    NumberRange{"rho", &OptimizerOptions::rho},
    NumberRange{"momentum_decay", &OptimizerOptions::momentum_decay, 0, infinity},
    NumberRange{"weight decay", &OptimizerOptions::weight_decay, 0, infinity}};

/// A NaN is in no range.
void check(std::string_view what, double value, double low, double high) {
  if (value >= low && value < high) return;
  const std::string limit = std::isinf(high) ? "" : " and less than " + std::to_string(static_cast<int>(high));
  throw InputError("the optimizer's " + std::string(what) + " must be " +
                   (low > 0 ? "more than 0" : "at least 0" + limit) + ", found " + std::to_string(value));
}

}  // namespace

std::span<const OptimizerRow> optimizer_rows() {
  static const std::vector<OptimizerRow> rows = [] {
    std::vector<OptimizerRow> all;
    for_each_rule([&]<class Rule>(std::type_identity<Rule>) {
      const auto more = Rule::rows();
      all.insert(all.end(), more.begin(), more.end());
    });
    const auto matrices = Muon::rows();  // whose update is no rule of single elements
    all.insert(all.end(), matrices.begin(), matrices.end());
    return all;
  }();
  return rows;
}

std::string optimizer_names() {
  return listed(
      optimizer_rows(), [](const OptimizerRow& row) { return row.name; }, " or ");
}

OptimizerOptions completed(OptimizerOptions options) {
  for (const OptimizerField& field : row_of(options.name).reads)
    for (const NumberRange& number : numbers)
      if (number.name == field.name && !(options.*number.value)) options.*number.value = field.usual;
  return options;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options) {
  const OptimizerRow& row = row_of(options.name);
  for (const NumberRange& number : numbers)
    if (const auto& value = options.*number.value) check(number.name, *value, number.low, number.high);
  OptimizerOptions all = completed(options);
  if (!all.weight_decay) all.weight_decay = row.weight_decay;
  return row.make(all);
}

double default_learning_rate(std::string_view optimizer) { return row_of(optimizer).learning_rate; }

bool optimizer_reads(std::string_view optimizer, std::string_view field) {
  return std::ranges::count(row_of(optimizer).reads, field, &OptimizerField::name) > 0;
}

}  // namespace ronda
