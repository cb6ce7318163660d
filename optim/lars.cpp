#include <ronda/optim/lars.hpp>
#include <ronda/optim/rule_optimizer.hpp>
#include <ronda/optim/update_loop.hpp>

namespace ronda {
namespace {

RONDA_UPDATE_LOOP(update_lars, Lars)

std::unique_ptr<Optimizer> make_lars(const OptimizerOptions& options) {
  return std::make_unique<RuleOptimizer<Lars>>(options.name, Lars{.momentum = *options.momentum}, *options.weight_decay,
                                               update_lars);
}

constexpr OptimizerRow lars_rows[] = {{"lars", 4, make_lars, {{{"momentum", 0.9}}}}};

}  // namespace

std::span<const OptimizerRow> Lars::rows() noexcept { return lars_rows; }

}  // namespace ronda
