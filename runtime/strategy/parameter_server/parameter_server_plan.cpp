#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/parameter_server/own_pace.hpp>
#include <ronda/runtime/strategy/parameter_server/parameter_server.hpp>
#include <ronda/runtime/strategy/parameter_server/parameter_servers.hpp>
#include <ronda/runtime/strategy/step/exchange_plan.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>

#include <string>
#include <utility>

namespace ronda {
namespace {

class ParameterServerPlan final : public ExchangePlan {
 public:
  explicit ParameterServerPlan(ParameterServer options) : options_(std::move(options)) {}

  Shard shard(const Communicator& communicator, bool of_step) const override {
    return shard_of(communicator, options_.roles(communicator.size()), of_step && options_.asynchronous);
  }
  bool all_ranks_compute() const noexcept override { return false; }
  std::vector<Range> shares_of_states(int ranks, std::size_t elements) const override {
    return shares_of_servers(elements, options_.roles(ranks));
  }
  void require_possible(const Replica& replica, const Optimizer& optimizer,
                        const ExchangeSettings& /*settings*/) const override {
    require_servable(replica.plan(), optimizer, replica.device());
  }
  std::vector<std::string> describe(const Communicator& communicator, std::size_t elements) const override {
    const Roles roles = options_.roles(communicator.size());
    const std::vector<Range> shares = shares_of_servers(elements, roles);
    std::vector<std::string> lines;
    for (int rank = 0; rank < communicator.size(); ++rank)
      if (roles.is_server(rank))
        lines.push_back("server rank " + std::to_string(rank) + " updates " +
                        text_of_elements(shares[static_cast<std::size_t>(rank)], elements) +
                        ", and keeps the optimizer's states of these alone; workers keep none");
    return lines;
  }
  std::unique_ptr<GradientExchange> make(Communicator& communicator, Replica& replica, const ExchangeSettings& settings,
                                         EventSink& /*sink*/) const override {
    const bool own_pace = options_.own_pace();
    agree(communicator, [&] {
      require_sense(options_.key_values(), communicator.size());
      if (own_pace && !replica.program().rank_sums().empty())
        throw InputError(
            "layers that add up over all workers, as a SyncBatchNorm does, need them in one step; take a BatchNorm, or "
            "neither " +
            setting("asynchronous") + " nor " + setting("replicas_to_aggregate"));
      check(options_, {.allreduce = settings.fusion.algorithm, .compression = settings.fusion.compression});
      if (own_pace && !replica.plan().tables().empty())
        throw InputError("the rows of " + replica.plan().tables().front().name +
                         ", whose gradient is sparse, need all workers in one step; take an embedding with " +
                         setting("sparse", "false") + ", or neither " + setting("asynchronous") + " nor " +
                         setting("replicas_to_aggregate"));
      take_own_arenas(replica);
    });
    if (own_pace)
      return OwnPace::make(communicator, options_.key_values(), replica.plan().slots, replica, settings.fusion);
    return std::make_unique<ParameterServers>(communicator, options_.roles(communicator.size()), replica,
                                              settings.fusion);
  }

 private:
  ParameterServer options_;
};

}  // namespace

std::unique_ptr<ExchangePlan> exchange_plan(const ParameterServer& options) {
  return std::make_unique<ParameterServerPlan>(options);
}

Shard shard_of(const Communicator& communicator, int servers, bool asynchronous) {
  if (servers == 0) return shard_of(communicator);
  return shard_of(communicator, Roles(communicator.size(), servers), asynchronous);
}

Shard shard_of(const Communicator& communicator, const Roles& roles, bool asynchronous) {
  const bool works = !roles.is_server(communicator.rank());
  if (asynchronous) return {works ? std::size_t{0} : 1, 1};
  return {static_cast<std::size_t>(works ? roles.index_of(communicator.rank()) : roles.workers()),
          static_cast<std::size_t>(roles.workers())};
}

}  // namespace ronda
