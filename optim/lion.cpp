#include <ronda/optim/lion.hpp>
#include <ronda/optim/rule_optimizer.hpp>
#include <ronda/optim/update_loop.hpp>

namespace ronda {
namespace {

RONDA_UPDATE_LOOP(update_lion, Lion)

std::unique_ptr<Optimizer> make_lion(const OptimizerOptions& options) {
  const Lion rule{.beta1 = *options.beta1, .beta2 = *options.beta2};
  return std::make_unique<RuleOptimizer<Lion>>(options.name, rule, *options.weight_decay, update_lion);
}

constexpr OptimizerRow lion_rows[] = {{"lion", 0.0003, make_lion, {{{"beta1", 0.9}, {"beta2", 0.99}}}, 0, true}};

}  // namespace

std::span<const OptimizerRow> Lion::rows() noexcept { return lion_rows; }

}  // namespace ronda
