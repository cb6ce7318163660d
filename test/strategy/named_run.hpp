#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ronda/data/loader.hpp>
#include <ronda/runtime/strategy/strategies.hpp>

#include "strategy/compared_runs.hpp"
#include "support/catch.hpp"

namespace ronda::test {

inline std::size_t rank_count() { return static_cast<std::size_t>(world().size()); }
inline std::size_t this_rank() { return static_cast<std::size_t>(world().rank()); }

/// A strategy, with its data: those whose ranks have parts of one model, and a whole one beside them.
struct NamedRun {
  struct Set {
    Communicator communicator;
    const char* strategy;
    Shard shard;
    std::size_t global_batch, micro_batches;
    std::string optimizer;
  };
  /// @param change  sets options that are not usual
  template <class Change>
  NamedRun(const Set& set, Sequential m, const Dataset& data, Change&& change)
      : model(std::move(m)),
        plan(data.size(), set.global_batch, set.shard, set.micro_batches),
        loader(data, SampleOrder(data.size(), 1, true), plan) {
    MirroredOptions options = MirroredOptions::for_data(data, plan);
    options.strategy = parse_strategy(set.strategy);
    change(options);
    strategy = make_strategy({.communicator = set.communicator,
                              .model = model,
                              .loss = loss,
                              .optimizer = make_optimizer({.name = set.optimizer}),
                              .schedule = Schedule({.learning_rate = 0.05}),
                              .options = options});
  }
  StepResult step() {
    for (std::size_t micro = 1; micro < plan.micro_batches(); ++micro) strategy->accumulate(loader.next());
    return strategy->train_step(loader.next());
  }
  std::vector<float> parameters() {
    strategy->state().gather_state();
    std::vector<float> all;
    for (const auto& p : strategy->parameters()) {
      const auto values = to_file(p, p.trained());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  Sequential model;
  SoftmaxCrossEntropy loss;
  BatchPlan plan;
  BatchLoader loader;
  std::unique_ptr<Strategy> strategy;
};

/// Losses, norms, parameters and states of both after some steps.
inline void compare_steps(NamedRun& parts, NamedRun& all, std::size_t steps, double tolerance) {
  CHECK(parts.parameters() == all.parameters());
  for (std::size_t k = 0; k < steps; ++k) {
    const StepResult a = all.step(), b = parts.step();
    CHECK(std::abs(b.loss - a.loss) <= tolerance * std::max(1.0, a.loss));
    CHECK(b.weight == a.weight);
    CHECK(b.gradient_norm == Approx(a.gradient_norm).epsilon(1e-3));
    CHECK_FALSE(b.nonfinite);
  }
  CHECK(relative_distance(parts.parameters(), all.parameters()) < 10 * tolerance);
  parts.strategy->state().average_states();
  all.strategy->state().average_states();
  const Numbers mine = layer_states_of(*parts.strategy), expected = layer_states_of(*all.strategy);
  REQUIRE(mine.size() == expected.size());
  for (const auto& [name, numbers] : mine) {
    INFO(name);
    CHECK(relative_distance(numbers, expected.at(name)) < 1e-3);
  }
  CHECK_FALSE(parts.strategy->parameter_hash().empty());
}

}  // namespace ronda::test
