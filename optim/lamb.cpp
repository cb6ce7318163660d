#include <ronda/optim/lamb.hpp>
#include <ronda/optim/rule_optimizer.hpp>
#include <ronda/optim/update_loop.hpp>

namespace ronda {
namespace {

RONDA_UPDATE_LOOP(update_lamb, Lamb)
RONDA_PROPOSE_LOOP(propose_lamb, Lamb)

std::unique_ptr<Optimizer> make_lamb(const OptimizerOptions& options) {
  const Lamb rule{.beta1 = *options.beta1, .beta2 = *options.beta2, .epsilon = *options.epsilon};
  return std::make_unique<RuleOptimizer<Lamb>>(options.name, rule, *options.weight_decay, update_lamb, propose_lamb);
}

constexpr OptimizerRow lamb_rows[] = {
    {"lamb", 0.01, make_lamb, {{{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-6}}}, 0.01, true}};

}  // namespace

std::span<const OptimizerRow> Lamb::rows() noexcept { return lamb_rows; }

}  // namespace ronda
