#include <ronda/optim/rmsprop.hpp>
#include <ronda/optim/rule_optimizer.hpp>
#include <ronda/optim/update_loop.hpp>

namespace ronda {
namespace {

RONDA_UPDATE_LOOP(update_rmsprop, PlainRmsProp)
RONDA_UPDATE_LOOP(update_momentum_rmsprop, MomentumRmsProp)
RONDA_UPDATE_LOOP(update_centered_rmsprop, CenteredRmsProp)
RONDA_UPDATE_LOOP(update_centered_momentum_rmsprop, CenteredMomentumRmsProp)

template <class Rule>
std::unique_ptr<Optimizer> make(const OptimizerOptions& options, typename RuleOptimizer<Rule>::Loop loop) {
  const Rule rule{.alpha = *options.alpha, .epsilon = *options.epsilon, .momentum = *options.momentum};
  return std::make_unique<RuleOptimizer<Rule>>(options.name, rule, *options.weight_decay, loop);
}

std::unique_ptr<Optimizer> make_rmsprop(const OptimizerOptions& options) {
  if (options.centered)
    return *options.momentum > 0 ? make<CenteredMomentumRmsProp>(options, update_centered_momentum_rmsprop)
                                 : make<CenteredRmsProp>(options, update_centered_rmsprop);
  return *options.momentum > 0 ? make<MomentumRmsProp>(options, update_momentum_rmsprop)
                               : make<PlainRmsProp>(options, update_rmsprop);
}

constexpr OptimizerRow rmsprop_rows[] = {
    {"rmsprop", 0.01, make_rmsprop, {{{"alpha", 0.99}, {"epsilon", 1e-8}, {"momentum", 0}, {"centered"}}}}};

}  // namespace

template <>
std::span<const OptimizerRow> PlainRmsProp::rows() noexcept {
  return rmsprop_rows;
}
template <>
std::span<const OptimizerRow> MomentumRmsProp::rows() noexcept {
  return {};
}
template <>
std::span<const OptimizerRow> CenteredRmsProp::rows() noexcept {
  return {};
}
template <>
std::span<const OptimizerRow> CenteredMomentumRmsProp::rows() noexcept {
  return {};
}

}  // namespace ronda
