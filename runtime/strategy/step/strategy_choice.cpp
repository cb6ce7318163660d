#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/step/strategy_choice.hpp>

#include <string>

namespace ronda {

std::unique_ptr<ExchangePlan> StrategyChoice::plan() const {
  if (plan_ == nullptr)
    throw InputError(setting("strategy", name_) +
                     " was given to a MirroredStrategy, whose ranks have the whole model; make it by make_strategy");
  return plan_(options_);
}

void StrategyChoice::refuse(std::string_view wanted) const {
  throw InputError(setting("strategy", name_) + " was given to a strategy of another kind, " + std::string(wanted) +
                   "; make it by make_strategy");
}

}  // namespace ronda
