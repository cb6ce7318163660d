#include <ronda/optim/adadelta.hpp>
#include <ronda/optim/rule_optimizer.hpp>
#include <ronda/optim/update_loop.hpp>

namespace ronda {
namespace {

RONDA_UPDATE_LOOP(update_adadelta, Adadelta)

std::unique_ptr<Optimizer> make_adadelta(const OptimizerOptions& options) {
  const Adadelta rule{.rho = *options.rho, .epsilon = *options.epsilon};
  return std::make_unique<RuleOptimizer<Adadelta>>(options.name, rule, *options.weight_decay, update_adadelta);
}

constexpr OptimizerRow adadelta_rows[] = {{"adadelta", 1, make_adadelta, {{{"rho", 0.9}, {"epsilon", 1e-6}}}}};

}  // namespace

std::span<const OptimizerRow> Adadelta::rows() noexcept { return adadelta_rows; }

}  // namespace ronda
