#include <ronda/optim/nadam.hpp>
#include <ronda/optim/rule_optimizer.hpp>
#include <ronda/optim/update_loop.hpp>

namespace ronda {
namespace {

RONDA_UPDATE_LOOP(update_nadam, NAdam)

std::unique_ptr<Optimizer> make_nadam(const OptimizerOptions& options) {
  const NAdam rule{.beta1 = *options.beta1,
                   .beta2 = *options.beta2,
                   .epsilon = *options.epsilon,
                   .momentum_decay = *options.momentum_decay};
  return std::make_unique<RuleOptimizer<NAdam>>(options.name, rule, *options.weight_decay, update_nadam);
}

constexpr OptimizerRow nadam_rows[] = {
    {"nadam", 0.002, make_nadam, {{{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"momentum_decay", 0.004}}}}};

}  // namespace

std::span<const OptimizerRow> NAdam::rows() noexcept { return nadam_rows; }

}  // namespace ronda
