#include <ronda/core/enum_names.hpp>
#include <ronda/core/error.hpp>
#include <ronda/optim/adam.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/optim/sgd.hpp>

#include <cmath>
#include <limits>

namespace ronda {
namespace {

using Make = std::unique_ptr<Optimizer> (*)(const OptimizerOptions&);

struct Kind {
  double learning_rate;
  Make make;
};

template <Decay decay, int default_percent>
std::unique_ptr<Optimizer> make_adam(const OptimizerOptions& o) {
  return std::make_unique<Adam>(o.beta1, o.beta2, o.epsilon, decay, o.weight_decay.value_or(default_percent / 100.0));
}
template <bool nesterov>
std::unique_ptr<Optimizer> make_momentum(const OptimizerOptions& o) {
  return std::make_unique<Momentum>(o.momentum, nesterov, o.weight_decay.value_or(0));
}
std::unique_ptr<Optimizer> make_sgd(const OptimizerOptions& o) {
  return std::make_unique<Sgd>(o.weight_decay.value_or(0));
}

constexpr EnumNames<Kind, 5> kinds{{{{0.1, make_sgd}, "sgd"},
                                    {{0.02, make_momentum<false>}, "momentum"},
                                    {{0.02, make_momentum<true>}, "nesterov"},
                                    {{0.001, make_adam<Decay::in_gradient, 0>}, "adam"},
                                    {{0.001, make_adam<Decay::decoupled, 1>}, "adamw"}}};

Kind kind_of(std::string_view name) { return parse_name(kinds, name, "an optimizer"); }

/// low ≤ value < high; a NaN is in no range.
void check(std::string_view what, double value, double low, double high) {
  if (value >= low && value < high) return;
  const std::string limit = std::isinf(high) ? "" : " and less than " + std::to_string(static_cast<int>(high));
  throw InputError("the optimizer's " + std::string(what) + " must be " +
                   (low > 0 ? "more than 0" : "at least 0" + limit) + ", found " + std::to_string(value));
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Kind kind = kind_of(options.name);
  check("momentum", options.momentum, 0, 1);
  check("beta1", options.beta1, 0, 1);
  check("beta2", options.beta2, 0, 1);
  check("epsilon", options.epsilon, std::numeric_limits<float>::min(), infinity);
  check("weight decay", options.weight_decay.value_or(0), 0, infinity);
  return kind.make(options);
}

double default_learning_rate(std::string_view optimizer) { return kind_of(optimizer).learning_rate; }

}  // namespace ronda
