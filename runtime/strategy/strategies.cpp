#include <ronda/core/error.hpp>
#include <ronda/core/listed.hpp>
#include <ronda/core/nearest_name.hpp>
#include <ronda/runtime/strategy/mirrored_strategy.hpp>
#include <ronda/runtime/strategy/pipeline_strategy.hpp>
#include <ronda/runtime/strategy/split_strategy.hpp>
#include <ronda/runtime/strategy/strategies.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace ronda {
namespace {

std::unique_ptr<Strategy> make(StrategyRequest r) {
  return std::make_unique<MirroredStrategy>(std::move(r.communicator), r.model, r.loss, std::move(r.optimizer),
                                            r.schedule, r.options, r.sink);
}

std::unique_ptr<Strategy> make_mirrored(StrategyRequest r) {
  r.options.local_sgd.reset();
  r.options.servers = 0;
  return make(std::move(r));
}

/// The same step; what is divided is the optimizer.
std::unique_ptr<Strategy> make_sharded(StrategyRequest r) {
  r.options.divide_states = true;
  return make_mirrored(std::move(r));
}

/// The same step; what is exchanged are parameters, now and then.
std::unique_ptr<Strategy> make_local_sgd(StrategyRequest r) {
  if (!r.options.local_sgd) r.options.local_sgd.emplace();
  r.options.servers = 0;
  return make(std::move(r));
}

/// The same step; what is exchanged goes to some ranks, and comes from these.
std::unique_ptr<Strategy> make_parameter_server(StrategyRequest r) {
  r.options.local_sgd.reset();
  if (r.options.servers == 0) r.options.servers = 1;
  return make(std::move(r));
}

/// Another step: ranks have parts of one model.
template <class PartsStrategy>
std::unique_ptr<Strategy> make_of_parts(StrategyRequest r) {
  r.options.local_sgd.reset();
  r.options.servers = 0;
  return std::make_unique<PartsStrategy>(std::move(r.communicator), r.model, r.loss, std::move(r.optimizer), r.schedule,
                                         r.options, r.sink);
}

constexpr StrategyRow rows[] = {
    {"mirrored", "each rank keeps all of the optimizer's states", "", make_mirrored},
    {"sharded", "each rank keeps the optimizer's states of its part of the parameters alone, and updates that",
     "a rank's update is written to all others, an error in it too", make_sharded},
    {"local_sgd", "each rank makes steps of its own, and once in several steps all take the mean of the parameters",
     "replicas differ between two synchronisations, and a synchronisation makes them equal, errors too",
     make_local_sgd},
    {"parameter_server", "some ranks keep the parameters and the optimizer's states, and update; the others compute",
     "all take the servers' parameters, errors too", make_parameter_server},
    {"pipeline", "each rank computes a stage of the model, and micro-batches go from one to the next",
     "each rank updates the parameters of its stage alone, and the others' copies are made anew",
     make_of_parts<PipelineStrategy>},
    {"split", "ranks compute each large operation together, each a part of it, on the same samples",
     "each rank updates its part of an operation alone, and what all ranks have alike is compared in the end",
     make_of_parts<SplitStrategy>},
};

}  // namespace

std::span<const StrategyRow> strategy_rows() noexcept { return rows; }

const StrategyRow& strategy_row(std::string_view name) {
  const auto found = std::ranges::find(rows, name, &StrategyRow::name);
  if (found != std::end(rows)) return *found;
  std::vector<std::string> names;
  for (const StrategyRow& row : rows) names.emplace_back(row.name);
  throw InputError("'" + std::string(name) + "' is not a strategy: .strategy is " +
                   listed(
                       strategy_rows(), [](const StrategyRow& row) { return row.name; }, " or ") +
                   did_you_mean(name, names));
}

}  // namespace ronda
