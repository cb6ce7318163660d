#include <ronda/optim/rule_optimizer.hpp>
#include <ronda/optim/sgd.hpp>
#include <ronda/optim/update_loop.hpp>

namespace ronda {
namespace {

RONDA_UPDATE_LOOP(descend, Sgd)
RONDA_UPDATE_LOOP(descend_with_momentum, Momentum)

std::unique_ptr<Optimizer> make_momentum(const OptimizerOptions& options) {
  const Momentum rule{.momentum = *options.momentum, .nesterov = options.name == "nesterov"};
  return std::make_unique<RuleOptimizer<Momentum>>(options.name, rule, *options.weight_decay, descend_with_momentum);
}

std::unique_ptr<Optimizer> make_sgd(const OptimizerOptions& options) {
  return std::make_unique<RuleOptimizer<Sgd>>(options.name, Sgd(), *options.weight_decay, descend);
}

constexpr OptimizerRow sgd_rows[] = {{"sgd", 0.1, make_sgd}};
constexpr OptimizerRow momentum_rows[] = {{"momentum", 0.02, make_momentum, {{{"momentum", 0.9}}}},
                                          {"nesterov", 0.02, make_momentum, {{{"momentum", 0.9}}}}};

}  // namespace

std::span<const OptimizerRow> Sgd::rows() noexcept { return sgd_rows; }
std::span<const OptimizerRow> Momentum::rows() noexcept { return momentum_rows; }

}  // namespace ronda
