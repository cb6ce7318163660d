// Where workers step at their own pace, a step that takes the gradients of all workers has the bits of one that waits
// for them, and one worker those of a single replica; all ranks hear the same of each step.
#include "strategy/device_run.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <ronda/core/error.hpp>

using namespace ronda;
using namespace ronda::test;

namespace own_pace_test {
namespace {

Sequential small_model() { return Sequential(Flatten(), Dense(33), ReLU(), Dense(4)); }

/// Steps as a trainer makes them: the last one settles. Returns what this rank heard of each.
std::vector<std::string> paced_steps(DeviceRun& run, int count, int slow_rank = -1) {
  std::vector<std::string> heard;
  for (int k = 0; k < count; ++k) {
    const bool computes =
        run.strategy.samples_for(static_cast<std::size_t>(k), static_cast<std::size_t>(count)).has_value();
    if (computes && world().rank() == slow_rank) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (k + 1 == count) run.strategy.synchronise_next();
    const StepResult result = run.step();
    heard.push_back(std::to_string(result.loss) + " " + std::to_string(result.weight) + " " +
                    std::to_string(result.learning_rate) + " " + std::to_string(run.strategy.updates()));
  }
  run.strategy.state().average_states();
  return heard;
}

bool all_heard_the_same(const std::vector<std::string>& heard) {
  std::string text;
  for (const std::string& line : heard) text += line + "\n";
  const auto all = everybody().gather_texts(text);
  return std::ranges::all_of(all, [&](const std::string& other) { return other == all.front(); });
}

}  // namespace

TEST_CASE("a step that takes all workers' gradients has the bits of one that waits for all") {
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  for (const int servers : server_counts())
    for (const bool clips : {false, true}) {
      DeviceSet set{.global_batch = 50, .optimizer = "adam", .clip_norm = clips ? 0.1 : 0, .ema_decay = 0.9};
      set.strategy = ParameterServer{.servers = servers};
      DeviceRun waiting(everybody(), nullptr, small_model(), data, set);
      set.strategy = ParameterServer{.servers = servers, .replicas_to_aggregate = world().size() - servers};
      DeviceRun paced(everybody(), nullptr, small_model(), data, set);
      CHECK(paced_steps(paced, 7) == paced_steps(waiting, 7));
      CHECK(paced.strategy.parameter_hash() == waiting.strategy.parameter_hash());
      std::string averages[2];
      int i = 0;
      for (DeviceRun* run : {&paced, &waiting})
        run->strategy.state().with_average([&] { averages[i++] = run->strategy.parameter_hash(); });
      CHECK(averages[0] == averages[1]);
    }
}

TEST_CASE("one asynchronous worker has the bits of one replica") {
  if (world().size() < 2 || world().size() > 3) return;
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  DeviceSet set{.global_batch = 50, .optimizer = "adam"};
  DeviceRun replica(alone(), nullptr, small_model(), data, set);
  set.strategy = ParameterServer{.servers = world().size() - 1, .asynchronous = true};
  DeviceRun paced(everybody(), nullptr, small_model(), data, set);
  const auto heard = paced_steps(paced, 7), expected = paced_steps(replica, 7);
  CHECK(heard == expected);
  CHECK(paced.strategy.parameter_hash() == replica.strategy.parameter_hash());
}

TEST_CASE("all ranks hear the same of each step, whoever is slow, and have the same parameters in the end") {
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  for (const int servers : server_counts()) {
    const int workers = world().size() - servers;
    for (int wanted = 0; wanted < workers; ++wanted) {  // 0: asynchronous
      INFO(servers << " servers, " << wanted << " gradients a step");
      DeviceSet set{.global_batch = 50, .optimizer = "momentum", .ema_decay = 0.5};
      set.strategy = ParameterServer{.servers = servers, .replicas_to_aggregate = wanted, .asynchronous = wanted == 0};
      DeviceRun run(everybody(), nullptr, small_model(), data, set);
      for (int epoch = 0; epoch < 3; ++epoch) CHECK(all_heard_the_same(paced_steps(run, 20, 0)));
      CHECK(run.strategy.updates() == 60);
      CHECK_FALSE(run.strategy.parameter_hash().empty());
      run.strategy.state().with_average([&] { CHECK_FALSE(run.strategy.parameter_hash().empty()); });
      const ServerTraffic traffic = run.strategy.exchange().report().traffic;
      if (wanted > 0) CHECK(traffic.dropped > 0);  // the slow worker's
      std::uint64_t taken = 0;
      for (const std::uint64_t count : traffic.staleness) taken += count;
      CHECK(taken == (wanted == 0 ? 60U : 0U));
    }
  }
}

TEST_CASE("what a server and what a worker raises is heard by all in the same step") {
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  for (const int servers : server_counts())
    for (const bool asynchronous : {false, true})
      for (const int raising : {0, world().size() - 1}) {
        DeviceSet set{.global_batch = 50, .optimizer = "sgd"};
        set.strategy = ParameterServer{
            .servers = servers, .replicas_to_aggregate = asynchronous ? 0 : 1, .asynchronous = asynchronous};
        DeviceRun run(everybody(), nullptr, small_model(), data, set);
        int step = 0;
        for (; step < 200; ++step) {
          if (step == 5 && world().rank() == raising) run.strategy.request_stop();
          if (step == 199) run.strategy.synchronise_next();
          static_cast<void>(run.strategy.samples_for(static_cast<std::size_t>(step), 1000));
          if (run.step().stop) break;
        }
        CHECK(step < 199);
        const auto steps = everybody().gather_texts(std::to_string(step));
        CHECK(std::ranges::all_of(steps, [&](const std::string& text) { return text == steps.front(); }));
        CHECK_FALSE(run.strategy.parameter_hash().empty());  // a step that stops settles
      }
}

TEST_CASE("rounding noise is counted by steps, which are the same on all ranks, so that a checkpoint has one count") {
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  for (const int servers : server_counts())
    for (const bool asynchronous : {false, true}) {
      DeviceSet set{.global_batch = 50, .optimizer = "sgd", .compression = Compression::int8};
      set.strategy = ParameterServer{
          .servers = servers, .replicas_to_aggregate = asynchronous ? 0 : 1, .asynchronous = asynchronous};
      DeviceRun run(everybody(), nullptr, small_model(), data, set);
      for (int epoch = 1; epoch <= 2; ++epoch) {
        paced_steps(run, 20, 0);  // worker 0 pushes less often
        StateList states;
        run.strategy.state().visit(states);
        const auto runs = std::ranges::find(states.states(), "pushes.runs", &State::name);
        REQUIRE(runs != states.states().end());
        CHECK(runs->tensor.as<std::int64_t>()[0] == 20 * epoch);
      }
    }
}

TEST_CASE("what a push carried of earlier losses is not lost where the step is skipped for all") {
  MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  const auto check = [&](int servers, bool waits, bool all_gradients) {
    INFO(servers << " servers; workers wait: " << waits << "; all gradients are looked at: " << all_gradients);
    DeviceSet set{
        .global_batch = 50, .optimizer = "sgd", .check_gradients = all_gradients, .compression = Compression::int8};
    set.strategy = ParameterServer{.servers = servers, .replicas_to_aggregate = waits ? 0 : world().size() - servers};
    DeviceRun run(everybody(), nullptr, small_model(), data, set);
    const auto lost = [&] {
      StateList states;
      run.strategy.state().visit(states);
      const auto found = std::ranges::find(states.states(), "pushes.residual", &State::name);
      if (found == states.states().end()) return std::vector<float>();  // a server
      const auto values = found->tensor.as<float>();
      return std::vector<float>(values.begin(), values.end());
    };
    paced_steps(run, 3);
    const auto before = lost();
    // One worker's picture is no number: its gradients are none, those of the others are.
    const Batch& batch = run.loader.next();
    const bool spoils = world().rank() == 0;
    const auto pixels = batch.input().as<float>();
    const float pixel = spoils ? pixels[0] : 0;
    if (spoils) pixels[0] = std::numeric_limits<float>::quiet_NaN();
    static_cast<void>(run.strategy.samples_for(0, 1));
    run.strategy.synchronise_next();
    const StepResult result = run.strategy.train_step(batch);
    if (spoils) pixels[0] = pixel;
    CHECK(result.nonfinite);
    const auto after = lost();
    static_cast<void>(run.strategy.samples_for(0, 1));
    run.strategy.synchronise_next();
    CHECK_FALSE(run.step().nonfinite);
    if (spoils || before.empty()) return;
    float most = 0, difference = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      most = std::max(most, std::abs(before[i]));
      difference = std::max(difference, std::abs(after[i] - before[i]));
    }
    CHECK(most > 0);
    CHECK(difference < 1e-3F * most);  // roundings of gradients, which are larger
  };
  for (const int servers : server_counts()) {
    check(servers, false, true);
    check(servers, true, true);
    check(servers, true, false);
  }
}

TEST_CASE("workers without samples of a small batch are not the first K") {
  const MemoryDataset data = toy_images(40, {9, 7, 1}, 4);
  for (const int servers : server_counts())
    for (int wanted = 1; wanted <= world().size() - servers; ++wanted) {
      DeviceSet set{.global_batch = 1, .optimizer = "sgd"};
      set.strategy = ParameterServer{.servers = servers, .replicas_to_aggregate = wanted};
      DeviceRun run(everybody(), nullptr, small_model(), data, set);
      const bool has_sample = run.plan.part(0).size() > 0;
      for (std::size_t k = 0; k < 10; ++k) {
        const bool computes = run.strategy.samples_for(k, 40).has_value();
        if (computes && has_sample) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        if (k == 9) run.strategy.synchronise_next();
        CHECK(run.step().weight == 1);
      }
      CHECK(run.strategy.updates() == 10);
    }
}

TEST_CASE("a long epoch takes no more memory than a short one, and ranks meet only after a step that settles") {
  if (world().size() < 2) return;
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  constexpr std::size_t steps = 1500;
  for (const bool asynchronous : {false, true}) {
    DeviceSet set{.global_batch = 4, .optimizer = "sgd"};
    set.strategy =
        ParameterServer{.servers = 1, .replicas_to_aggregate = asynchronous ? 0 : 1, .asynchronous = asynchronous};
    DeviceRun run(everybody(), nullptr, small_model(), data, set);
    const std::size_t memory = run.strategy.exchange().report().memory;
    for (std::size_t k = 0; k < steps; ++k) {
      static_cast<void>(run.strategy.samples_for(k, 2 * steps));
      if (k + 1 == steps) {
        CHECK(run.strategy.exchange().report().memory < memory + steps * sizeof(StepControl));
        require_mentions(message_of<LogicError>([&] { run.strategy.state().average_states(); }), {"synchronise_next"});
        run.strategy.synchronise_next();
      }
      run.step();
    }
    CHECK_FALSE(run.strategy.parameter_hash().empty());
  }
}

TEST_CASE("what cannot be at one's own pace is refused") {
  if (world().size() < 3) return;
  const MemoryDataset data = toy_images(64, {12, 12, 1}, 4);
  const auto refused = [&](Sequential model, ParameterServer servers) {
    return message_of<InputError>(
        [&] { DeviceRun(everybody(), nullptr, std::move(model), data, {.strategy = servers}); });
  };
  require_mentions(refused(Sequential(Conv2d(4, 3), SyncBatchNorm(), Flatten(), Dense(4)), {.asynchronous = true}),
                   {"SyncBatchNorm", ".asynchronous"});
  require_mentions(refused(small_model(), {.replicas_to_aggregate = world().size()}), {".replicas_to_aggregate"});
  require_mentions(refused(small_model(), {.replicas_to_aggregate = 1, .asynchronous = true}),
                   {".replicas_to_aggregate", ".asynchronous"});
}

}  // namespace own_pace_test
