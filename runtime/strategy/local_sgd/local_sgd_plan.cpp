#include <ronda/runtime/strategy/local_sgd/local_sgd.hpp>
#include <ronda/runtime/strategy/local_sgd/local_steps.hpp>
#include <ronda/runtime/strategy/replica/arena_memory.hpp>
#include <ronda/runtime/strategy/step/exchange_plan.hpp>

#include <utility>

namespace ronda {
namespace {

class LocalSgdPlan final : public ExchangePlan {
 public:
  explicit LocalSgdPlan(const LocalSgd& options) : options_(options) {}

  std::unique_ptr<GradientExchange> make(Communicator& communicator, Replica& replica, const ExchangeSettings& settings,
                                         EventSink& /*sink*/) const override {
    const ReplicaPlan& plan = replica.plan();
    agree(communicator, [&] {
      check(options_);
      require_local_steps(replica);
    });
    Buffer gradients = allocate_arena(ArenaPlace::gradients, plan.arena_bytes, communicator, Memory::node_shared),
           values;
    agree(communicator,
          [&] { values = allocate_arena(ArenaPlace::values, plan.arena_bytes, *replica.device().context); });
    replica.take_arenas(std::move(values), std::move(gradients), {});
    return std::make_unique<LocalSteps>(communicator, plan.slots, replica, options_, settings.fusion);
  }

 private:
  LocalSgd options_;
};

}  // namespace

std::unique_ptr<ExchangePlan> exchange_plan(const LocalSgd& options) { return std::make_unique<LocalSgdPlan>(options); }

}  // namespace ronda
