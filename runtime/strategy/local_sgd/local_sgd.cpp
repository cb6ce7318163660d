#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/strategy/exchange/local_replicas.hpp>
#include <ronda/runtime/strategy/local_sgd/local_sgd.hpp>
#include <ronda/runtime/strategy/local_sgd/local_steps.hpp>
#include <ronda/runtime/strategy/replica/arena_memory.hpp>
#include <ronda/runtime/strategy/step/exchange_plan.hpp>

#include <cmath>
#include <string>
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
      require_local_steps(replica, LocalSgd::name);
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

OuterOptimizer parse_outer_optimizer(std::string_view name) {
  for (const OuterOptimizer each : {OuterOptimizer::average, OuterOptimizer::nesterov})
    if (name == name_of(each)) return each;
  throw InputError("'" + std::string(name) + "' is not an outer optimizer: choose average or nesterov");
}

std::string_view name_of(OuterOptimizer optimizer) noexcept {
  return optimizer == OuterOptimizer::average ? "average" : "nesterov";
}

void check(const LocalSgd& o) {
  if (o.synchronise_every == 0) throw InputError(setting("synchronise_every") + " is at least 1");
  if (o.fragments == 0 || o.fragments > o.synchronise_every)
    throw InputError(setting("fragments") + " is from 1 to " + setting("synchronise_every") + ", not " +
                     std::to_string(o.fragments));
  if (o.fragments == 1 && o.fragment_delay != 1)
    throw InputError(setting("fragment_delay") + " is for " + setting("fragments") + " above 1");
  if (o.fragments > 1 && (o.fragment_delay == 0 || o.fragment_delay >= o.synchronise_every))
    throw InputError(setting("fragment_delay") + " is at least 1 and below " + setting("synchronise_every") + ", not " +
                     std::to_string(o.fragment_delay));
  if (o.outer_optimizer == OuterOptimizer::average && (o.outer_rate || o.outer_momentum))
    throw InputError(setting("outer_rate") + " and " + setting("outer_momentum") + " are for " +
                     setting("outer_optimizer", "nesterov"));
  if (!(o.rate() > 0) || !std::isfinite(o.rate()))
    throw InputError(setting("outer_rate") + " is a number above 0, not " + shortest(o.rate()));
  if (!(o.momentum() >= 0 && o.momentum() < 1))
    throw InputError(setting("outer_momentum") + " is a number from 0 on and below 1, not " + shortest(o.momentum()));
}

void check(const LocalSgd& o, const Demands& demands) {
  check(o);
  refuse_audits(demands, LocalSgd::name,
                "replicas differ between two synchronisations, and a synchronisation makes them equal, errors too");
  refuse_unequal_shares(demands, setting("strategy", "local_sgd"),
                        "the mean is taken of ranks that have made equal steps");
  if (demands.compression != Compression::none && o.local_after == 0)
    throw InputError(setting("compression") + " is of gradients, and " + setting("strategy", "local_sgd") +
                     " sends none without " + setting("local_after") + "; " + setting("delta_compression") +
                     " is of what it sends");
  if (demands.exact && demands.timed_saves)
    throw InputError(setting("exact") + " promises equal bits, and with " + setting("strategy", "local_sgd") +
                     ", which takes a mean over the ranks for each checkpoint, they depend on when these come; give " +
                     setting("checkpoint_every") + " a number of steps");
  if (demands.prunes && o.momentum() > 0)
    throw InputError(setting("prune") + " sets weights to zero, and the momentum of " +
                     setting("outer_optimizer", "nesterov") + " would move them again; take average");
}

std::unique_ptr<ExchangePlan> exchange_plan(const LocalSgd& options) { return std::make_unique<LocalSgdPlan>(options); }

}  // namespace ronda
