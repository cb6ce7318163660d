// Of tables with sparse gradients workers push and pull the rows that are touched: the values of mirrored replicas.
#include "strategy/compared_runs.hpp"
#include "strategy/device_run.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"

#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>

using namespace ronda;
using namespace ronda::test;

namespace served_rows_test {
namespace {

constexpr std::int64_t served_rows = 500, text_length = 5;

/// Texts of up to five tokens of the first ones, the rest padding; the label is whether most are even.
MemoryDataset short_texts(std::size_t samples, std::uint64_t tokens_used) {
  const RngKey draw(5, Purpose::test, "texts");
  std::vector<std::int32_t> tokens, labels;
  for (std::size_t n = 0; n < samples; ++n) {
    int even = 0, used = static_cast<int>(draw.below(text_length + 1, n));  // also empty texts
    for (int t = 0; t < text_length; ++t) {
      const auto token =
          static_cast<std::int32_t>(draw.below(tokens_used, 1000 + n * text_length + static_cast<std::size_t>(t)));
      tokens.push_back(t < used ? token : -1);
      even += t < used && token % 2 == 0 ? 1 : 0;
    }
    labels.push_back(2 * even > used ? 1 : 0);
  }
  std::vector<Column> columns;
  columns.push_back({"input", Shape{text_length}, std::move(tokens)});
  columns.push_back({"target", Shape{}, std::move(labels)});
  return MemoryDataset(std::move(columns));
}

/// Rows of 7 numbers: the servers' shares cut some.
Sequential bag_model() { return Sequential(EmbeddingBag(served_rows, 7, BagMode::mean), Dense(9), ReLU(), Dense(2)); }
/// A table read twice, and another one; all that is not sparse is small.
Sequential two_tables() {
  const EmbeddingBag table(served_rows, 4, BagMode::sum), other(served_rows, 3, BagMode::mean);
  return Sequential(Function([=](Value x, GraphBuilder& b) {
                      return b.apply(ConcatSpec{1}, {table.build(x, b), other.build(x, b), table.build(x, b)});
                    }),
                    Dense(2));
}

DeviceSet rows_by(int servers, DeviceSet set) {
  set.strategy = ParameterServer{.servers = servers};
  return set;
}

/// Steps of servers and workers, and of mirrored replicas on the workers' ranks.
void check_as_mirrored(const DeviceSet& set, Sequential (*model)(), const MemoryDataset& data) {
  for (const int servers : server_counts()) {
    INFO(servers << " servers, " << set.optimizer);
    const bool works = world().rank() < world().size() - servers;
    const Communicator alike = everybody().split(works ? 0 : 1, world().rank());
    DeviceRun served(everybody(), nullptr, model(), data, rows_by(servers, set));
    std::optional<DeviceRun> mirrored;
    DeviceSet same = set;
    same.picks = served.strategy.picks();
    if (works) mirrored.emplace(alike, nullptr, model(), data, same);
    for (int k = 0; k < 9; ++k) {
      const StepResult here = served.step();
      if (!works) continue;
      const StepResult there = mirrored->step();
      CHECK(std::abs(here.loss - there.loss) <= 1e-6 * std::abs(there.loss));
      CHECK(std::abs(here.gradient_norm - there.gradient_norm) <= 1e-5 * there.gradient_norm);
      CHECK(relative_distance(served.parameters(), mirrored->parameters()) < 1e-5);
    }
    served.strategy.state().average_states();
    CHECK_FALSE(served.strategy.parameter_hash().empty());  // the same on all ranks
    if (works) CHECK(relative_distance(served.parameters(), mirrored->parameters()) < 1e-5);
  }
}

}  // namespace

TEST_CASE("servers update the touched rows of tables, and workers have them, as mirrored replicas do") {
  const MemoryDataset data = short_texts(131, served_rows);
  for (const char* optimizer : {"sgd", "momentum", "adam", "adagrad"})
    check_as_mirrored({.global_batch = 50, .optimizer = optimizer}, bag_model, data);
  check_as_mirrored({.global_batch = 50, .optimizer = "adamw"}, two_tables, data);
}

TEST_CASE("rows are served with accumulation, clipping, the finite check and an average of the parameters") {
  const MemoryDataset data = short_texts(131, served_rows);
  for (const DeviceSet& set : with_all_that_steps_do({.global_batch = 50, .optimizer = "adam"}))
    check_as_mirrored(set, two_tables, data);
}

TEST_CASE("rows that nobody touches do not travel, and dense gradients may be compressed beside them") {
  for (const int servers : server_counts()) {
    std::vector<std::uint64_t> pushed, pulled;
    for (const std::uint64_t used : {std::uint64_t{20}, static_cast<std::uint64_t>(served_rows)}) {
      const MemoryDataset data = short_texts(131, used);
      DeviceRun run(everybody(), nullptr, bag_model(), data, rows_by(servers, {.global_batch = 100}));
      run.steps(5);
      pushed.push_back(run.strategy.exchange().report().traffic.pushed_bytes);
      pulled.push_back(run.strategy.exchange().report().traffic.pulled_bytes);
    }
    CHECK(5 * pushed.front() < 4 * pushed.back());
    CHECK(5 * pulled.front() < 4 * pulled.back());
    DeviceSet set = rows_by(servers, {.global_batch = 100});
    set.compression = Compression::int8;
    const MemoryDataset data = short_texts(131, served_rows);
    DeviceRun run(everybody(), nullptr, bag_model(), data, set);
    const double first = run.step().loss;
    run.steps(20);
    CHECK(run.step().loss < first);
  }
}

TEST_CASE("servers have the states of rows, each once") {
  const MemoryDataset data = short_texts(131, served_rows);
  for (const int servers : server_counts()) {
    DeviceRun run(everybody(), nullptr, bag_model(), data, rows_by(servers, {.global_batch = 50, .optimizer = "adam"}));
    run.steps(2);
    const auto saved = run.strategy.state().divided().whole();
    run.strategy.state().gather_state();
    CHECK(sum_over_ranks(std::ssize(saved)) == 2 * std::ssize(run.strategy.parameters()));
  }
}

TEST_CASE("rows need all workers in one step") {
  if (world().size() < 3) return;
  const MemoryDataset data = short_texts(64, served_rows);
  DeviceSet set{.global_batch = 32};
  set.strategy = ParameterServer{.servers = 1, .asynchronous = true};
  require_mentions(message_of<InputError>([&] { DeviceRun(everybody(), nullptr, bag_model(), data, set); }),
                   {"sparse", ".asynchronous", ".sparse = false"});
}

}  // namespace served_rows_test
