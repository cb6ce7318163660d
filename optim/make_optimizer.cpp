#include <ronda/core/error.hpp>
#include <ronda/core/names.hpp>
#include <ronda/core/text.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/muon.hpp>
#include <ronda/optim/rules.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace ronda {
namespace {

std::vector<std::string> names_of(std::span<const OptimizerRow> rows) {
  std::vector<std::string> names;
  for (const OptimizerRow& row : rows) names.emplace_back(row.name);
  return names;
}

const OptimizerRow& row_of(std::string_view name) {
  const auto& rows = optimizer_rows();
  const auto found = std::ranges::find(rows, name, &OptimizerRow::name);
  if (found != rows.end()) return *found;
  throw InputError("'" + std::string(name) + "' is not an optimizer: expected " + optimizer_names() +
                   did_you_mean(name, names_of(rows)));
}

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The numbers among the options: low ≤ value < high, also as a float, which is what rules compute with.
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
  if (value >= low && static_cast<float>(value) < high) return;
  const std::string limit = std::isinf(high) ? "a float32, " : "less than " + shortest(high) + " as a float32, ";
  throw InputError("the optimizer's " + std::string(what) + " must be " + limit +
                   (low > 0 ? "and more than 0, 1.2e-38 or more" : "and at least 0") + "; found " + shortest(value));
}

std::string names_of_readers(std::string_view field) {
  std::vector<OptimizerRow> readers;
  std::ranges::copy_if(optimizer_rows(), std::back_inserter(readers),
                       [&](const OptimizerRow& row) { return optimizer_reads(row.name, field); });
  return listed(
      readers, [](const OptimizerRow& row) { return row.name; }, " and ");
}

/// What was given and would not be used is no training that anybody meant.
void refuse_what_is_not_read(const OptimizerOptions& options) {
  const auto refuse = [&](std::string_view field) {
    throw InputError(setting("optimizer." + std::string(field)) + " has no meaning for " +
                     setting("optimizer.name", options.name) + ": it is for " + names_of_readers(field));
  };
  for (const NumberRange& number : numbers)
    if (number.value != &OptimizerOptions::weight_decay && options.*number.value &&
        !optimizer_reads(options.name, number.name))
      refuse(number.name);
  if (options.centered && !optimizer_reads(options.name, "centered")) refuse("centered");
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
  refuse_what_is_not_read(options);
  OptimizerOptions all = completed(options);
  if (!all.weight_decay) all.weight_decay = row.weight_decay;
  return row.make(all);
}

double default_learning_rate(std::string_view optimizer) { return row_of(optimizer).learning_rate; }

bool optimizer_reads(std::string_view optimizer, std::string_view field) {
  return std::ranges::count(row_of(optimizer).reads, field, &OptimizerField::name) > 0;
}

}  // namespace ronda
