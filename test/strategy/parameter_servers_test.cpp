// Workers that push gradients to servers and pull values train as mirrored replicas, of as many ranks as there are
// workers; servers alone keep the optimizer.
#include "strategy/compared_runs.hpp"
#include "strategy/device_run.hpp"
#include "strategy/step_by_hand.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/parameter_server/pushed_pieces.hpp>

using namespace ronda;
using namespace ronda::test;

namespace parameter_servers_test {
namespace {

DeviceSet served_by(int servers, DeviceSet set) {
  set.strategy = ParameterServer{.servers = servers};
  return set;
}

/// A training by servers, and beside it mirrored replicas on the workers' ranks.
struct ServersAndMirrors {
  ServersAndMirrors(int servers, const DeviceSet& set, const MemoryDataset& data, Sequential (*model)())
      : workers(world().size() - servers),
        works(world().rank() < workers),
        alike(everybody().split(works ? 0 : 1, world().rank())),
        served(everybody(), nullptr, model(), data, served_by(servers, set)) {
    DeviceSet same = set;
    same.picks = served.strategy.picks();
    if (works) mirrored.emplace(alike, nullptr, model(), data, same);
  }
  void step() {
    const StepResult here = served.step();
    if (!works) return;
    const StepResult there = mirrored->step();
    CHECK(std::abs(here.loss - there.loss) <= 1e-6 * std::abs(there.loss));
    CHECK(std::abs(here.gradient_norm - there.gradient_norm) <= 1e-5 * there.gradient_norm);
    CHECK(here.weight == there.weight);
    CHECK(here.learning_rate == there.learning_rate);
  }
  void steps(int count) {
    for (int k = 0; k < count; ++k) step();
  }
  /// All that the replicas show. Of two workers the sum of gradients has one order only, and so the same bits.
  void check_equal() {
    served.strategy.state().average_states();
    const std::string hash = served.strategy.parameter_hash();
    if (!works) return;
    mirrored->strategy.state().average_states();
    if (workers <= 2) CHECK(hash == mirrored->strategy.parameter_hash());
    CHECK(relative_distance(served.parameters(), mirrored->parameters()) < 1e-5);
  }

  int workers;
  bool works;
  Communicator alike;
  DeviceRun served;
  std::optional<DeviceRun> mirrored;
};

void check_equal_steps(const DeviceSet& set, const MemoryDataset& data, Sequential (*model)(), int steps = 7) {
  for (const int servers : server_counts()) {
    INFO(servers << " servers");
    ServersAndMirrors both(servers, set, data, model);
    both.steps(steps);
    both.check_equal();
  }
}

Sequential normalized() { return Sequential(Conv2d(6, 3, {.bias = false}), BatchNorm(), ReLU(), Flatten(), Dense(4)); }
Sequential synchronized() {
  return Sequential(Conv2d(6, 3, {.bias = false}), SyncBatchNorm(), ReLU(), Conv2d(8, 3), ReLU(), Flatten(), Dense(4));
}

ParameterGroup first_weights_alone(std::string_view name) { return {.frozen = name != "dense1.weight"}; }

}  // namespace

TEST_CASE("buckets are cut where the shares of two servers meet") {
  const std::vector<FusionBuffer::Bucket> buckets{{0, 1, 0, 400, {}, {}}, {1, 2, 448, 64, {}, {}}};
  const auto pieces = cut_buckets(buckets, std::vector<Range>{{}, {0, 48}, {48, 128}});
  REQUIRE(pieces.size() == 3);
  CHECK((pieces[0].bucket == 0 && pieces[0].server == 1 && pieces[0].elements == Range{0, 48}));
  CHECK((pieces[1].bucket == 0 && pieces[1].server == 2 && pieces[1].elements == Range{48, 100}));
  CHECK((pieces[2].bucket == 1 && pieces[2].server == 2 && pieces[2].elements == Range{112, 128}));
}

TEST_CASE("servers share the arena out by bytes, and workers have none of it") {
  const auto shares = shares_of_servers(1000, Roles(5, 2));
  REQUIRE(shares.size() == 5);
  for (int worker = 0; worker < 3; ++worker) CHECK(shares[static_cast<std::size_t>(worker)].size() == 0);
  CHECK(shares[3] == Range{0, 496});
  CHECK(shares[4] == Range{496, 1000});
}

TEST_CASE("servers train as mirrored replicas, by every rule that looks at one element at a time") {
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  for (const OptimizerRow& row : optimizer_rows()) {
    if (row.name == "lars" || row.name == "lamb" || row.name == "muon") continue;  // refused
    INFO(row.name);
    check_equal_steps({.global_batch = 50, .optimizer = std::string(row.name)}, data, three_layers);
  }
}

TEST_CASE("some workers have no sample of an epoch's last step") {
  const MemoryDataset data = toy_images(101, {9, 7, 1}, 4);
  check_equal_steps({.global_batch = 50, .optimizer = "adam"}, data, three_layers);
}

TEST_CASE("so they do with accumulation, clipping, the finite check and an average of the parameters") {
  const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
  for (const DeviceSet& set : with_all_that_steps_do({.global_batch = 50, .optimizer = "momentum", .library = true}))
    check_equal_steps(set, data, cnn);
}

TEST_CASE("tests see the average of the parameters, on the workers") {
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4), test = toy_images(57, {9, 7, 1}, 4, 2);
  for (const int servers : server_counts()) {
    ServersAndMirrors both(servers, {.global_batch = 50, .optimizer = "adam", .ema_decay = 0.9}, data, three_layers);
    both.steps(4);
    const auto tested = [&](DeviceRun& run) {
      BatchLoader loader(test, SampleOrder(57, 0, false),
                         BatchPlan(57, 20, run.strategy.shard()).with_capacity(run.strategy.batch_capacity()));
      return run.strategy.evaluate(loader);
    };
    const Evaluation here = tested(both.served);
    const auto told = everybody().gather_texts(std::to_string(here.loss) + " " + std::to_string(here.metric));
    CHECK(std::ranges::all_of(told, [&](const std::string& text) { return text == told.front(); }));
    both.served.strategy.state().with_average([&] { CHECK_FALSE(both.served.strategy.parameter_hash().empty()); });
    if (!both.works) continue;
    const Evaluation there = tested(*both.mirrored);
    CHECK(std::abs(here.loss - there.loss) < 1e-6);
    CHECK(here.metric == there.metric);
  }
}

TEST_CASE("batch norms count over the workers, and servers are given what layers keep") {
  const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
  for (Sequential (*model)() : {normalized, synchronized})
    for (const int servers : server_counts()) {
      ServersAndMirrors both(servers, {.global_batch = 50, .optimizer = "adamw"}, data, model);
      both.steps(5);
      both.served.strategy.state().gather_state();
      const Numbers gathered = layer_states_of(both.served.strategy);
      if (both.works)  // keeps its own statistics until they are averaged
        for (const auto& [name, numbers] : layer_states_of(both.mirrored->strategy)) {
          INFO(name);
          CHECK(relative_distance(gathered.at(name), numbers) < 1e-5);
        }
      both.check_equal();
      for (const auto& [name, numbers] : layer_states_of(both.served.strategy)) {
        INFO(name);
        std::vector<float> first = numbers;
        everybody().broadcast(Tensor(std::span(first)));
        CHECK(numbers == first);
        if (both.works)
          CHECK(relative_distance(numbers, layer_states_of(both.mirrored->strategy).at(name)) < 1e-5);
        else
          CHECK(relative_distance(gathered.at(name), numbers) < 1e-6);
      }
    }
}

TEST_CASE("frozen parameters and rates of their own, and weights that stay zero") {
  const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
  check_equal_steps({.global_batch = 50, .optimizer = "adamw", .group_of = some_frozen}, data, synchronized);
  for (const int servers : server_counts()) {
    ServersAndMirrors both(servers, {.global_batch = 50, .optimizer = "adam", .group_of = pruned_weights}, data,
                           three_layers);
    both.steps(2);
    both.served.strategy.synchronise_next();
    both.step();
    both.served.strategy.state().prune(0.7);
    if (both.works) both.mirrored->strategy.state().prune(0.7);
    both.steps(3);
    both.check_equal();
    const auto zeros = both.served.strategy.state().zeros();
    CHECK(zeros.zeros >= zeros.weights * 6 / 10);
  }
}

TEST_CASE("two runs have the same bits, and by hand a step has them too") {
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  for (const int servers : server_counts()) {
    const DeviceSet set = served_by(servers, {.global_batch = 50, .optimizer = "adam"});
    DeviceRun one(everybody(), nullptr, three_layers(), data, set),
        other(everybody(), nullptr, three_layers(), data, set),
        by_hand(everybody(), nullptr, three_layers(), data, set);
    for (int k = 0; k < 6; ++k) {
      one.step();
      other.step();
      step_by_hand(by_hand.strategy, by_hand.loader.next());
    }
    for (DeviceRun* run : {&one, &other, &by_hand}) run->strategy.state().average_states();
    CHECK(other.strategy.parameter_hash() == one.strategy.parameter_hash());
    if (world().size() - servers <= 2) CHECK(by_hand.strategy.parameter_hash() == one.strategy.parameter_hash());
    CHECK(relative_distance(by_hand.parameters(), one.parameters()) < 1e-5);
  }
}

TEST_CASE("all ranks hear of an update that overflows on one server") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  for (const int servers : server_counts()) {
    DeviceRun run(everybody(), nullptr, three_layers(), data,
                  served_by(servers, {.global_batch = 32, .optimizer = "sgd", .group_of = first_weights_alone}));
    CHECK_FALSE(run.step().spoiled);
    run.strategy.state().set_rate_factor(1e300);
    CHECK(run.step().spoiled);
  }
}

TEST_CASE("servers raise and hear of flags") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  for (const int servers : server_counts()) {
    DeviceRun run(everybody(), nullptr, mlp(), data, served_by(servers, {.global_batch = 32}));
    CHECK_FALSE(run.step().stop);
    if (world().rank() + 1 == world().size()) run.strategy.request_stop();
    CHECK(run.step().stop);
  }
}

TEST_CASE("workers keep no states of the optimizer, and servers save each once") {
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  for (const int servers : server_counts()) {
    ServersAndMirrors both(servers, {.global_batch = 50, .optimizer = "adam"}, data, three_layers);
    MirroredStrategy& strategy = both.served.strategy;
    if (both.works) CHECK(strategy.memory().optimizer == 0);
    const std::size_t elements =
        DeviceRun(alone(), nullptr, three_layers(), data, {.optimizer = "adam"}).strategy.memory().optimizer;
    CHECK(sum_over_ranks(static_cast<std::int64_t>(strategy.memory().optimizer)) ==
          static_cast<std::int64_t>(elements));
    both.steps(3);
    const auto saved = strategy.state().divided().whole();
    strategy.state().gather_state();
    if (both.works) CHECK(saved.empty());
    CHECK(sum_over_ranks(std::ssize(saved)) == 2 * std::ssize(strategy.parameters()));
    // The states of rank 0's mirrored replica, on all ranks.
    if (both.works) both.mirrored->strategy.state().gather_state();
    Numbers mirrored;
    if (both.works) mirrored = shown_by(both.mirrored->strategy);
    for (const Parameter& parameter : strategy.parameters())
      for (const char* moment : {".exp_avg", ".exp_avg_sq"}) {
        const std::string name = parameter.name + moment;
        INFO(name);
        std::vector<float> expected(static_cast<std::size_t>(parameter.value.desc().count()));
        if (world().rank() == 0) {
          REQUIRE(mirrored.contains(name));
          expected = mirrored.at(name);
        }
        everybody().broadcast(Tensor(std::span(expected)));
        const auto found = std::ranges::find(saved, name, &State::name);
        if (found != saved.end()) CHECK(relative_distance(to_file(*found), expected) < 1e-5);
      }
  }
}

TEST_CASE("what goes to servers and comes from them is counted") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  for (const int servers : server_counts()) {
    DeviceRun run(everybody(), nullptr, mlp(), data, served_by(servers, {.global_batch = 32}));
    run.steps(3);
    const ServerTraffic traffic = run.strategy.exchange().report().traffic;
    CHECK(traffic.servers == servers);
    const auto workers = static_cast<std::uint64_t>(world().size() - servers);
    if (world().rank() == 0) {
      const std::uint64_t least = run.strategy.state().parameter_count() * sizeof(float) * 3;
      CHECK((traffic.pushed_bytes >= least && traffic.pushed_bytes < 2 * least));
      CHECK((traffic.pulled_bytes >= least && traffic.pulled_bytes < 2 * least));
    }
    const bool server = run.strategy.shard().is_empty();
    const auto all = sum_over_ranks(static_cast<std::int64_t>(server ? traffic.pushed_bytes : 0));
    auto pushed = static_cast<std::int64_t>(traffic.pushed_bytes);
    everybody().broadcast(Tensor(std::span(&pushed, 1)));
    CHECK(all == pushed * static_cast<std::int64_t>(workers));
  }
}

TEST_CASE("more servers than lines of parameters leave some without any") {
  const MemoryDataset data = toy_images(64, {1, 1, 1}, 2);
  check_equal_steps({.global_batch = 32, .optimizer = "adam"}, data, [] { return Sequential(Flatten(), Dense(2)); });
}

TEST_CASE("workers alone are searched for numbers that are not finite: a server computes none") {
  const MemoryDataset data({std::vector<float>(64 * 63, std::numeric_limits<float>::infinity())}, {9, 7, 1},
                           std::vector<std::int32_t>(64));
  for (const int servers : server_counts()) {
    DeviceRun run(everybody(), nullptr, mlp(), data, served_by(servers, {.global_batch = 32, .check_gradients = true}));
    const Batch& batch = run.loader.next();
    CHECK(batch.real() == (run.strategy.shard().is_empty() ? 0 : run.plan.part(0).size()));
    CHECK(run.strategy.train_step(batch).nonfinite);
    const std::string text = run.strategy.explain_nonfinite(batch);
    for (int rank = 0; rank < world().size(); ++rank) {
      const bool named = text.find("on rank " + std::to_string(rank) + " ") != std::string::npos;
      CHECK(named == (rank < world().size() - servers));
    }
  }
}

TEST_CASE("what a server cannot do with its own part is refused, with the remedy") {
  const int ranks = world().size();
  require_mentions(refusal_of({.strategy = ParameterServer{.servers = ranks}}, mlp()),
                   {".servers", "no rank is left as a worker"});
  require_mentions(refusal_of({.strategy = ParameterServer{.servers = -1}}, mlp()), {".servers"});
  if (ranks == 1) return;
  for (const char* optimizer : {"lars", "lamb", "muon"})
    require_mentions(refusal_of({.optimizer = optimizer, .strategy = ParameterServer{.servers = 1}}, mlp()),
                     {optimizer, ".strategy = parameter_server", ".strategy = mirrored"});
  require_mentions(refusal_of({.dtype = DType::bfloat16, .strategy = ParameterServer{.servers = 1}}, mlp()),
                   {"bfloat16", ".strategy = mirrored"});
  require_mentions(
      refusal_of({.strategy = ParameterServer{.servers = 1}, .algorithm = AllreduceAlgorithm::ring}, mlp()),
      {".allreduce = auto"});
  const Devices devices(everybody(), AllreduceAlgorithm::staged);
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  require_mentions(message_of<InputError>([&] { DeviceRun(devices, mlp(), data, {.strategy = ParameterServer{}}); }),
                   {".device = cpu"});
}

}  // namespace parameter_servers_test
