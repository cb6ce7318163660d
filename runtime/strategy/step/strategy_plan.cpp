#include <ronda/core/hash.hpp>
#include <ronda/runtime/strategy/step/strategy_plan.hpp>

namespace ronda {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

}  // namespace

void StrategyPlan::require_equal_on(const Communicator& communicator) const {
  require_equal(communicator, "the plan", joined(lines));
}

std::string StrategyPlan::hash() const { return Hash().add(joined(lines)).text(); }

}  // namespace ronda
