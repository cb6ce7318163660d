#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/replica/arena_memory.hpp>
#include <ronda/runtime/strategy/step/exchange_plan.hpp>
#include <ronda/runtime/strategy/step/gradient_accumulator.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>

#include <string>
#include <utility>

namespace ronda {

Shard ExchangePlan::shard(const Communicator& communicator, bool /*of_step*/) const { return shard_of(communicator); }

std::size_t ExchangePlan::gradient_bytes(const Replica& replica, const ExchangeSettings& settings,
                                         int /*ranks*/) const {
  const ReplicaPlan& planned = replica.plan();
  const std::size_t summed = planned.widens()
                                 ? planned.elements() * sizeof(float)
                                 : GradientAccumulator::bytes(planned.dense_elements(), settings.micro_batches);
  return planned.arena_bytes + planned.list_bytes() + summed;
}

void take_own_arenas(Replica& replica) {
  const ReplicaPlan& plan = replica.plan();
  DeviceContext& context = *replica.device().context;
  Buffer gradients = allocate_arena(ArenaPlace::gradients, plan.arena_bytes, context),
         lists = context.allocate(plan.list_bytes());
  replica.take_arenas(allocate_arena(ArenaPlace::values, plan.arena_bytes, context), std::move(gradients),
                      std::move(lists));
}

std::string text_of_elements(const Range& range, std::size_t all) {
  return "elements " + std::to_string(range.begin) + " to " + std::to_string(range.end) + " of " + std::to_string(all);
}

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
