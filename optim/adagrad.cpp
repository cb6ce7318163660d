#include <ronda/optim/adagrad.hpp>
#include <ronda/optim/rule_optimizer.hpp>
#include <ronda/optim/update_loop.hpp>

namespace ronda {
namespace {

RONDA_UPDATE_LOOP(update_adagrad, Adagrad)

std::unique_ptr<Optimizer> make_adagrad(const OptimizerOptions& options) {
  const Adagrad rule{
      .lr_decay = *options.lr_decay, .epsilon = *options.epsilon, .initial = *options.initial_accumulator_value};
  return std::make_unique<RuleOptimizer<Adagrad>>(options.name, rule, *options.weight_decay, update_adagrad);
}

constexpr OptimizerRow adagrad_rows[] = {
    {"adagrad", 0.01, make_adagrad, {{{"lr_decay", 0}, {"epsilon", 1e-10}, {"initial_accumulator_value", 0}}}}};

}  // namespace

std::span<const OptimizerRow> Adagrad::rows() noexcept { return adagrad_rows; }

}  // namespace ronda
