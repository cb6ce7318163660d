#include <ronda/optim/adabelief.hpp>
#include <ronda/optim/rule_optimizer.hpp>
#include <ronda/optim/update_loop.hpp>

namespace ronda {
namespace {

RONDA_UPDATE_LOOP(update_adabelief, AdaBelief)

std::unique_ptr<Optimizer> make_adabelief(const OptimizerOptions& options) {
  const AdaBelief rule{.beta1 = *options.beta1, .beta2 = *options.beta2, .epsilon = *options.epsilon};
  return std::make_unique<RuleOptimizer<AdaBelief>>(options.name, rule, *options.weight_decay, update_adabelief);
}

constexpr OptimizerRow adabelief_rows[] = {
    {"adabelief", 0.001, make_adabelief, {{{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-16}}}, 0, true}};

}  // namespace

std::span<const OptimizerRow> AdaBelief::rows() noexcept { return adabelief_rows; }

}  // namespace ronda
