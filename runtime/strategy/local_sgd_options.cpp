#include <ronda/core/error.hpp>
#include <ronda/core/shortest.hpp>
#include <ronda/runtime/strategy/local_sgd_options.hpp>

#include <cmath>
#include <string>

namespace ronda {

OuterOptimizer parse_outer_optimizer(std::string_view name) {
  for (const OuterOptimizer each : {OuterOptimizer::average, OuterOptimizer::nesterov})
    if (name == name_of(each)) return each;
  throw InputError("'" + std::string(name) + "' is not an outer optimizer: choose average or nesterov");
}

std::string_view name_of(OuterOptimizer optimizer) noexcept {
  return optimizer == OuterOptimizer::average ? "average" : "nesterov";
}

void check(const LocalSgdOptions& o) {
  if (o.synchronise_every == 0) throw InputError(".local_sgd.synchronise_every is at least 1");
  if (o.fragments == 0 || o.fragments > o.synchronise_every)
    throw InputError(".local_sgd.fragments is from 1 to .local_sgd.synchronise_every, not " +
                     std::to_string(o.fragments));
  if (o.fragments == 1 && o.fragment_delay != 1)
    throw InputError(".local_sgd.fragment_delay is for .local_sgd.fragments above 1");
  if (o.fragments > 1 && (o.fragment_delay == 0 || o.fragment_delay >= o.synchronise_every))
    throw InputError(".local_sgd.fragment_delay is at least 1 and below .local_sgd.synchronise_every, not " +
                     std::to_string(o.fragment_delay));
  if (o.outer_optimizer == OuterOptimizer::average && (o.outer_rate || o.outer_momentum))
    throw InputError(
        ".local_sgd.outer_rate and .local_sgd.outer_momentum are for .local_sgd.outer_optimizer = nesterov");
  if (!(o.rate() > 0) || !std::isfinite(o.rate()))
    throw InputError(".local_sgd.outer_rate is a number above 0, not " + shortest(o.rate()));
  if (!(o.momentum() >= 0 && o.momentum() < 1))
    throw InputError(".local_sgd.outer_momentum is a number from 0 on and below 1, not " + shortest(o.momentum()));
}

}  // namespace ronda
