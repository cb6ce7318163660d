#include <ronda/core/message.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/exchange/dense_exchange.hpp>
#include <ronda/runtime/strategy/exchange/node_reduce.hpp>
#include <ronda/runtime/strategy/exchange/sharded_update.hpp>
#include <ronda/runtime/strategy/replica/arena_memory.hpp>
#include <ronda/runtime/strategy/replica/shared_values.hpp>
#include <ronda/runtime/strategy/sharded/sharded.hpp>
#include <ronda/runtime/strategy/sharded/sharded_gradients.hpp>

#include <utility>

namespace ronda {
namespace {

/// Takes the arenas: the values, and their average, once on each node.
std::unique_ptr<GradientExchange> make_update_of_one_copy(Communicator& communicator, Replica& replica,
                                                          const FusionOptions& options, bool keeps_average,
                                                          EventSink& sink) {
  const ReplicaPlan& plan = replica.plan();
  for (const auto& note : communicator.take_notes())
    sink.on_message(Severity::warning, note);  // later notes are about this memory
  Buffer values = allocate_on_node(communicator, ArenaPlace::values, plan.arena_bytes, Memory::one_a_node),
         average = allocate_on_node(communicator, ArenaPlace::average, keeps_average ? plan.arena_bytes : 0,
                                    Memory::one_a_node),
         gradients = allocate_arena(ArenaPlace::gradients, plan.arena_bytes, communicator, Memory::node_shared);
  for (const auto& note : communicator.take_notes()) sink.on_message(Severity::warning, note);
  replica.take_arenas(std::move(values), std::move(gradients), {});
  const Topology& topology = communicator.topology();
  replica.share_values(std::move(average),
                       share_of_rank(plan.elements(), static_cast<std::size_t>(topology.rank_on_node),
                                     static_cast<std::size_t>(topology.ranks_on_node)));
  if (wants_node_reduce(communicator, plan, options, 0))
    if (auto shared = NodeReduce::make(communicator, plan.slots, replica.values(), replica.gradients(),
                                       plan.dense_elements(), options))
      return shared;
  return std::make_unique<ShardedUpdate>(communicator, plan.slots, replica, options,
                                         std::make_unique<GatheredOneCopy>(communicator, replica));
}

class ShardedPlan final : public ExchangePlan {
 public:
  explicit ShardedPlan(const Sharded& options) : options_(options) {}

  std::vector<Range> shares_of_states(int ranks, std::size_t elements) const override {
    return shares_of_ranks(elements, static_cast<std::size_t>(ranks));
  }
  bool has_one_copy(const Communicator& communicator) const override {
    return options_.one_copy && communicator.size() > 1;
  }
  std::size_t gradient_bytes(const Replica& replica, const ExchangeSettings& settings, int ranks) const override {
    return options_.shard_gradients && ranks > 1 ? bytes_of_sharded_gradients(replica, settings.fusion, ranks)
                                                 : ExchangePlan::gradient_bytes(replica, settings, ranks);
  }
  void require_possible(const Replica& replica, const Optimizer& optimizer,
                        const ExchangeSettings& settings) const override {
    require_divisible(replica.plan(), optimizer, replica.device());
    if (options_.one_copy) require_shareable(replica.plan());
    if (options_.shard_gradients) require_sharded_gradients(replica.plan(), optimizer, settings.fusion);
  }
  std::vector<std::string> describe(const Communicator& communicator, std::size_t elements) const override {
    if (communicator.size() == 1) return {};
    const auto rank = static_cast<std::size_t>(communicator.rank());
    const Range mine = share_of_rank(elements, rank, static_cast<std::size_t>(communicator.size()));
    return {"this rank updates " + text_of_elements(mine, elements) + ", and keeps the optimizer's states" +
            (options_.shard_gradients ? " and the sums of gradients" : "") + " of these alone"};
  }
  std::unique_ptr<GradientExchange> make(Communicator& communicator, Replica& replica, const ExchangeSettings& settings,
                                         EventSink& sink) const override {
    const bool one_copy = has_one_copy(communicator);
    if (options_.shard_gradients && communicator.size() > 1)
      return make_sharded_gradients(communicator, replica, settings.fusion, one_copy, settings.keeps_average, sink);
    if (one_copy) return make_update_of_one_copy(communicator, replica, settings.fusion, settings.keeps_average, sink);
    ExchangeSettings all = settings;
    all.node_update_bytes = 0;  // by parts at any size
    return make_dense_exchange(communicator, replica, all, sink);
  }

 private:
  Sharded options_;
};

}  // namespace

void check(const Sharded& options, const Demands& demands) {
  refuse_audits(demands, Sharded::name, "a rank's update is written to all others, an error in it too");
  if (options.shard_gradients)
    refuse_unequal_shares(demands, setting("shard_gradients"), "ranks sum the gradients of each micro-batch together");
}

std::unique_ptr<ExchangePlan> exchange_plan(const Sharded& options) { return std::make_unique<ShardedPlan>(options); }

}  // namespace ronda
