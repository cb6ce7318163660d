#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>
#include <ronda/runtime/strategy/pipeline/pipeline_strategy.hpp>
#include <ronda/runtime/strategy/split/split_strategy.hpp>
#include <ronda/runtime/strategy/strategies.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

template <class Made>
std::unique_ptr<Strategy> make(StrategyRequest r) {
  return std::make_unique<Made>(std::move(r.communicator), r.model, r.loss, std::move(r.optimizer), r.schedule,
                                r.options, r.sink);
}

constexpr StrategyRow all_strategies[] = {
    {Mirrored::name, "each rank keeps all; gradients are averaged", make<MirroredStrategy>},
    {Sharded::name, "each rank updates a share of the parameters", make<MirroredStrategy>},
    {LocalSgd::name, "ranks step alone and average their parameters now and then", make<MirroredStrategy>},
    {Easgd::name, "ranks step alone, pulled towards a common center", make<MirroredStrategy>},
    {ParameterServer::name, "servers update, workers compute", make<MirroredStrategy>},
    {Pipeline::name, "each rank computes a stage of the model", make<PipelineStrategy>},
    {Split::name, "ranks share each large operation", make<SplitStrategy>},
};

}  // namespace

std::span<const StrategyRow> strategy_rows() noexcept { return all_strategies; }

std::unique_ptr<Strategy> make_strategy(StrategyRequest request) {
  const auto* row = std::ranges::find(all_strategies, request.options.strategy.name(), &StrategyRow::name);
  return (row != std::end(all_strategies) ? row : all_strategies)
      ->make(std::move(request));  // others exchange what replicas computed
}

Shard shard_of(const Communicator& communicator, const StrategyOptions& strategy, bool of_step) {
  const auto shard = [&](const auto& chosen) {
    if constexpr (requires { exchange_plan(chosen); })
      return exchange_plan(chosen)->shard(communicator, of_step);
    else
      return chosen.shard(static_cast<std::size_t>(communicator.rank()), static_cast<std::size_t>(communicator.size()));
  };
  return std::visit(shard, static_cast<const AnyStrategy&>(strategy));
}

}  // namespace ronda
