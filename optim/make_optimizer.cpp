#include <ronda/core/error.hpp>
#include <ronda/core/listed.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/rules.hpp>

#include <algorithm>
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

/// low ≤ value < high; a NaN is in no range.
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
    return all;
  }();
  return rows;
}

std::string optimizer_names() {
  return listed(
      optimizer_rows(), [](const OptimizerRow& row) { return row.name; }, " or ");
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const OptimizerRow& row = row_of(options.name);
  check("momentum", options.momentum, 0, 1);
  check("beta1", options.beta1, 0, 1);
  check("beta2", options.beta2, 0, 1);
  check("epsilon", options.epsilon, std::numeric_limits<float>::min(), infinity);
  check("weight decay", options.weight_decay.value_or(0), 0, infinity);
  return row.make(options);
}

double default_learning_rate(std::string_view optimizer) { return row_of(optimizer).learning_rate; }

bool optimizer_reads(std::string_view optimizer, std::string_view field) {
  return std::ranges::count(row_of(optimizer).reads, field) > 0;
}

}  // namespace ronda
