#include <ronda/optim/adam.hpp>
#include <ronda/optim/rule_optimizer.hpp>
#include <ronda/optim/update_loop.hpp>

namespace ronda {
namespace {

RONDA_UPDATE_LOOP(update_adam, Adam)

std::unique_ptr<Optimizer> make_adam(const OptimizerOptions& options) {
  const Decay decay = options.name == "adamw" ? Decay::decoupled : Decay::in_gradient;
  const Adam rule{.beta1 = *options.beta1, .beta2 = *options.beta2, .epsilon = *options.epsilon, .decay = decay};
  return std::make_unique<RuleOptimizer<Adam>>(options.name, rule, *options.weight_decay, update_adam);
}

constexpr OptimizerRow adam_rows[] = {
    {"adam", 0.001, make_adam, {{{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}}}},
    {"adamw", 0.001, make_adam, {{{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}}}, 0.01, true}};

}  // namespace

std::span<const OptimizerRow> Adam::rows() noexcept { return adam_rows; }

}  // namespace ronda
