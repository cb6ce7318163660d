// What workers push may be compressed: servers get the sum of all gradients in the course of steps, whatever rounding
// takes from each.
#include "strategy/compared_runs.hpp"
#include "strategy/device_run.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/parameter_server/pushed_pieces.hpp>

using namespace ronda;
using namespace ronda::test;

namespace pushed_pieces_test {
namespace {

constexpr Compression pushable[] = {Compression::none, Compression::bf16, Compression::fp16,
                                    Compression::int8, Compression::int4, Compression::two_bit};
constexpr std::size_t elements = 80'000;  // some chunks; two servers' shares meet in the second bucket

/// A worker and a server of the second half of an arena, without messages between them.
struct Pushed {
  explicit Pushed(Compression compression, int threads_ = 1)
      : threads(threads_),
        arena(Buffer::host(elements * sizeof(float))),
        pieces(cut_buckets(std::vector<FusionBuffer::Bucket>{{0, 1, 0, 4000, {}, {}},
                                                             {1, 2, 4032, (elements - 1008) * sizeof(float), {}, {}}},
                           std::vector<Range>{{}, {0, half}, {half, elements}})),
        sent({.compression = compression, .seed = 7}, 0, pieces, arena),
        arriving(compression, pieces, 2, {half, elements}),
        memory(Buffer::host(arriving.memory())) {}

  std::span<float> gradients() { return {reinterpret_cast<float*>(arena.data()), elements}; }
  /// From -1 to 1.
  void draw(std::uint64_t step) {
    const RngKey key(3, Purpose::test, step);
    for (std::size_t i = 0; i < elements; ++i) gradients()[i] = 2 * key.uniform(i) - 1;
  }
  void push() {
    sent.begin_push();
    for (std::size_t i = 0, here = 0; i < sent.count(); ++i) {
      sent.pack(i, threads);
      if (pieces[i].server != 2) continue;
      const Tensor from = sent.message(i), to = arriving.message(here++, memory.data());
      REQUIRE(to.desc().bytes() == from.desc().bytes());
      std::memcpy(to.data(), from.data(), from.desc().bytes());
    }
  }
  std::vector<float> arrived() {
    if (!arriving.packed()) {
      const auto* const numbers = reinterpret_cast<const float*>(memory.data());
      return {numbers, numbers + half};
    }
    std::vector<float> share(half);
    arriving.sum(std::array<const std::byte*, 1>{memory.data()}, share.data(), threads);
    return share;
  }
  /// Of all elements, in the order of pieces, which is that of the arena here.
  std::vector<float> lost() {
    StateList states;
    sent.visit(states);
    const auto found = std::ranges::find(states.states(), "pushes.residual", &State::name);
    if (found == states.states().end()) return std::vector<float>(elements);
    const auto numbers = found->tensor.as<float>();
    std::vector<float> all(numbers.begin(), numbers.end());
    all.insert(all.begin() + 1000, 8, 0.0F);  // between the buckets
    return all;
  }

  static constexpr std::size_t half = elements / 2;
  int threads;
  Buffer arena;
  std::vector<PushedPiece> pieces;
  PackedPieces sent;
  ArrivingPieces arriving;
  Buffer memory;
};

}  // namespace

TEST_CASE("what has arrived and what is kept are all that was pushed") {
  for (const Compression compression : pushable) {
    INFO(name_of(compression));
    Pushed both(compression);
    std::vector<double> pushed(Pushed::half), arrived(Pushed::half);
    for (std::uint64_t step = 0; step < 5; ++step) {
      both.draw(step);
      both.push();
      const auto share = both.arrived();
      for (std::size_t i = 0; i < Pushed::half; ++i) {
        pushed[i] += both.gradients()[Pushed::half + i];
        arrived[i] += share[i];
      }
    }
    const auto lost = both.lost();
    const double most = keeps_lost(compression) ? 1e-5 : 5 * largest_loss(compression) + 1e-6;
    std::size_t wrong = 0, apart = 0;
    for (std::size_t i = 0; i < Pushed::half; ++i) {
      wrong += std::abs(arrived[i] + lost[Pushed::half + i] - pushed[i]) <= most ? 0 : 1;
      apart += arrived[i] != pushed[i] ? 1 : 0;
    }
    CHECK(wrong == 0);
    CHECK((apart > 0) == (compression != Compression::none));
  }
}

TEST_CASE("a push that was dropped leaves what is kept as it was") {
  for (const Compression compression : pushable) {
    INFO(name_of(compression));
    Pushed both(compression);
    for (std::uint64_t step = 0; step < 3; ++step) {
      both.draw(step);
      both.push();
    }
    const auto before = both.lost();
    both.draw(3);
    both.push();
    both.sent.take_back(1);
    const auto after = both.lost();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < elements; ++i) wrong += std::abs(after[i] - before[i]) <= 1e-5 ? 0 : 1;
    CHECK(wrong == 0);
    both.gradients()[elements - 1] = std::numeric_limits<float>::quiet_NaN();
    both.push();
    if (compression != Compression::none) CHECK(std::isnan(both.arrived().back()));
    both.sent.take_back(1);
    CHECK(std::ranges::all_of(both.lost(), [](float x) { return std::isfinite(x); }));
    both.sent.keep_before();
    both.draw(4);
    both.push();
    const auto kept = both.lost();
    both.gradients()[5] = std::numeric_limits<float>::infinity();
    both.push();
    both.draw(5);  // sums come to where the gradients were
    both.sent.take_back(3);
    CHECK(both.lost() == kept);
  }
}

TEST_CASE("packed gradients do not depend on the number of threads") {
  for (const Compression compression : pushable) {
    Pushed one(compression), several(compression, 3);
    for (Pushed* both : {&one, &several})
      for (std::uint64_t step = 0; step < 2; ++step) {
        both->draw(step);
        both->push();
      }
    CHECK(one.arrived() == several.arrived());
    CHECK(one.lost() == several.lost());
  }
}

TEST_CASE("servers train by compressed pushes, whose bytes are counted, and two runs have the same bits") {
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  for (const int servers : server_counts()) {
    DeviceSet set{.global_batch = 50, .optimizer = "momentum"};
    set.strategy = ParameterServer{.servers = servers};
    DeviceRun plain(everybody(), nullptr, three_layers(), data, set);
    std::vector<double> losses;
    for (int k = 0; k < 30; ++k) losses.push_back(plain.step().loss);
    const auto full = static_cast<double>(plain.strategy.exchange().report().traffic.pushed_bytes);
    for (const Compression compression : pushable) {
      INFO(servers << " servers, " << name_of(compression));
      set.compression = compression;
      DeviceRun run(everybody(), nullptr, three_layers(), data, set),
          again(everybody(), nullptr, three_layers(), data, set);
      double last = 0;
      for (int k = 0; k < 30; ++k) {
        last = run.step().loss;
        CHECK(again.step().loss == last);
      }
      CHECK(last < losses.front() * 0.7);
      CHECK(std::abs(last - losses.back()) < (largest_loss(compression) > 0.1 ? 0.2 : 0.02) * losses.front());
      for (DeviceRun* each : {&run, &again}) each->strategy.state().average_states();
      CHECK(run.strategy.parameter_hash() == again.strategy.parameter_hash());
      const auto pushed = static_cast<double>(run.strategy.exchange().report().traffic.pushed_bytes);
      const double part = static_cast<double>(wire_bytes(compression, 512)) / (512 * sizeof(float));
      CHECK(pushed >= part * full);
      CHECK(pushed <= 1.3 * part * full);  // small pieces, each with scales of its own
    }
  }
}

/// A model with all gradients −1, which 2bit sends unchanged: each step adds the rate to each parameter, for the
/// gradient of any worker.
struct ConstantGradients {
  ConstantGradients(int servers, bool asynchronous)
      : plan(data.size(), 16, shard_of(everybody(), servers, asynchronous)),
        loader(data, SampleOrder(data.size(), 1, true), plan),
        strategy(everybody(), model, loss, make_optimizer({.name = "sgd"}),
                 Schedule({.name = "constant", .learning_rate = 0.5, .total_steps = 1000}),
                 options(servers, asynchronous)) {}
  static MemoryDataset samples() {
    return {std::vector<float>(64 * inputs, 1), {inputs}, std::vector<float>(64, 1e6F), {1}};
  }
  [[nodiscard]] MirroredOptions options(int servers, bool asynchronous) const {
    MirroredOptions o = MirroredOptions::for_data(data, plan);
    o.strategy = ParameterServer{
        .servers = servers, .replicas_to_aggregate = asynchronous ? 0 : 1, .asynchronous = asynchronous};
    o.fusion.compression = Compression::two_bit;
    o.platform.primitives = make_reference_primitives();
    return o;
  }
  [[nodiscard]] std::vector<float> weights() const {
    const float* const values = strategy.parameters()[0].value.pointer<float>();
    return {values, values + inputs};
  }

  static constexpr int inputs = 300;
  MemoryDataset data = samples();
  Sequential model{Dense(1)};
  L1Loss loss;
  BatchPlan plan;
  BatchLoader loader;
  MirroredStrategy strategy;
};

TEST_CASE("workers at their own pace push compressed gradients, and none is lost") {
  for (const int servers : server_counts())
    for (const bool asynchronous : {false, true}) {
      ConstantGradients run(servers, asynchronous);
      const std::vector<float> before = run.weights();
      constexpr std::size_t steps = 60;
      for (std::size_t k = 0; k < steps; ++k) {
        static_cast<void>(run.strategy.samples_for(k, steps));
        if (k % 7 == 0 || k + 1 == steps) run.strategy.synchronise_next();  // late gradients are dropped
        run.strategy.train_step(run.loader.next());
      }
      const std::vector<float> after = run.weights();
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < before.size(); ++i) wrong += std::abs(after[i] - before[i] - 30) < 1e-3F ? 0 : 1;
      CHECK(wrong == 0);
      CHECK_FALSE(run.strategy.parameter_hash().empty());
    }
}

TEST_CASE("a compression that would have to be chosen is refused") {
  if (world().size() < 2) return;
  DeviceSet set{.global_batch = 32};
  set.strategy = ParameterServer{.servers = 1};
  set.compression = Compression::automatic;
  require_mentions(refusal_of(set), {".compression", "auto", "2bit"});
}

}  // namespace pushed_pieces_test
