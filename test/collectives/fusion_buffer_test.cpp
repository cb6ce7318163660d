// The step as the strategy uses it: mark gradients in any order, wait, and have the sums of all ranks.
#include "support/numbers.hpp"
#include "support/rank_case.hpp"

#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ronda::fusion_buffer_test {
namespace {

/// Slots back to back, at aligned offsets.
std::vector<GradientSlot> slots_of(const std::vector<std::size_t>& counts) {
  ArenaPlan plan;
  std::vector<GradientSlot> slots;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::size_t bytes = counts[i] * sizeof(float);
    // ids count from the first layer, slots lie in the order of backward
    slots.push_back({ParameterId{static_cast<std::uint32_t>(counts.size() - 1 - i)}, "p" + std::to_string(i),
                     plan.reserve(bytes), bytes});
  }
  return slots;
}

struct Model {
  explicit Model(Communicator group, const std::vector<std::size_t>& counts, FusionOptions options = {})
      : communicator(std::move(group)),
        slots(slots_of(counts)),
        arena(communicator.allocate(slots.empty() ? 0 : slots.back().offset + slots.back().bytes, Memory::node_shared)),
        fusion(communicator, slots, arena, options) {}

  std::span<float> gradient(std::size_t slot) {
    return {reinterpret_cast<float*>(arena.data() + slots[slot].offset), slots[slot].bytes / sizeof(float)};
  }

  Communicator communicator;
  std::vector<GradientSlot> slots;
  Buffer arena;
  FusionBuffer fusion;
};

const std::vector<std::size_t> layers{10, 1000, 64, 200'000, 3, 0, 50'000, 7};
const FusionOptions small_buckets{4096, 100'000, AllreduceAlgorithm::automatic};

RANK_CASE("gradients are compressed, the control block is not") {
  for (const Compression compression : {Compression::bf16, Compression::int8}) {
    FusionOptions options = small_buckets;
    options.algorithm = AllreduceAlgorithm::ring;
    options.compression = compression;
    Model model(test::world().communicator(), layers, options);
    const int ranks = model.communicator.size(), rank = model.communicator.rank();
    CpuStream stream;
    for (int step = 0; step < 3; ++step) {
      model.fusion.begin();
      model.fusion.control() = {.loss = 1e15 + rank, .flags = {}};  // beyond what float32 holds
      for (std::size_t slot = 0; slot < layers.size(); ++slot) {
        std::ranges::fill(model.gradient(slot), static_cast<float>(rank + 1));
        model.fusion.mark_ready(model.slots[slot].id, stream);
      }
      model.fusion.wait(stream);
      CHECK(model.fusion.control().loss == 1e15 * ranks + ranks * (ranks - 1) / 2);
      const float sum = static_cast<float>(ranks * (ranks + 1)) / 2;
      const float margin = ranks == 1 ? 0 : 2 * sum / 63;  // two steps of int8, and the last run's
      for (std::size_t slot = 0; slot < layers.size(); ++slot)
        CHECK(std::ranges::all_of(model.gradient(slot),
                                  [&](float gradient) { return std::abs(gradient - sum) <= margin; }));
    }
    for (const auto& bucket : model.fusion.buckets())
      CHECK(bucket.compression == (ranks == 1 || bucket.bytes == 0 ? Compression::none : compression));
    const std::string line = model.fusion.describe().front();
    CHECK(line.ends_with(ranks == 1 ? "nothing is sent" : " by ring, " + std::string(name_of(compression))));
    CHECK((model.fusion.memory() > 0) == (ranks > 1));
    struct : StateVisitor {
      void visit(const State& state) override { names.push_back(state.name); }
      std::vector<std::string> names;
    } states;
    model.fusion.visit(states);
    CHECK(states.names.empty() == (ranks == 1 || compression == Compression::bf16));
    if (!states.names.empty()) CHECK(states.names.front() == "bucket 0.residual");
  }
}

RANK_CASE("a step sums all gradients and the control block, whatever order the slots are marked in") {
  Model model(test::world().communicator(), layers, small_buckets);
  const int ranks = model.communicator.size(), rank = model.communicator.rank();
  CpuStream stream;
  std::vector<std::size_t> order(layers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (int step = 0; step < 8; ++step) {
    // Ranks need not agree on the order, only on the buckets.
    std::rotate(order.begin(), order.begin() + (step + rank) % static_cast<int>(order.size()), order.end());
    if (step % 3 == 2) std::reverse(order.begin(), order.end());
    model.fusion.begin();
    model.fusion.control() = {.loss = 1.5 * (rank + 1), .weight = static_cast<double>(rank), .flags = {}};
    for (const std::size_t slot : order) {
      test::fill_numbers(model.gradient(slot), rank);
      model.fusion.mark_ready(model.slots[slot].id, stream);
    }
    model.fusion.wait(stream);
    const StepControl& total = model.fusion.control();
    CHECK(total.loss == 1.5 * ranks * (ranks + 1) / 2);
    CHECK(total.weight == ranks * (ranks - 1) / 2.0);
    CHECK(total.flags.stop == 0);
    for (std::size_t slot = 0; slot < layers.size(); ++slot) {
      INFO("step " << step << ", slot " << slot);
      CHECK(test::count_wrong<float>(model.gradient(slot), ranks) == 0);
    }
  }
  CHECK(model.fusion.exposed_seconds() > 0);
}

RANK_CASE("buckets that start late: a step sums all, or the control block alone") {
  FusionOptions options = small_buckets;
  options.late = true;
  Model model(test::world().communicator(), layers, options);
  const int ranks = model.communicator.size(), rank = model.communicator.rank();
  CpuStream stream;
  for (int step = 0; step < 6; ++step) {
    const bool alone = step % 3 == 1;
    model.fusion.begin();
    model.fusion.control() = {.loss = static_cast<double>(rank + step), .flags = {}};
    for (std::size_t slot = 0; slot < layers.size(); ++slot) {
      std::ranges::fill(model.gradient(slot), static_cast<float>(rank + 1));
      model.fusion.mark_ready(model.slots[slot].id, stream);
    }
    alone ? model.fusion.wait_for_control(stream) : model.fusion.wait(stream);
    CHECK(model.fusion.control().loss == ranks * step + ranks * (ranks - 1) / 2);
    const auto expected = static_cast<float>(alone ? rank + 1 : ranks * (ranks + 1) / 2);
    for (std::size_t slot = 0; slot < layers.size(); ++slot)
      CHECK(std::ranges::all_of(model.gradient(slot), [&](float gradient) { return gradient == expected; }));
  }
  Model early(test::world().communicator(), {10}, small_buckets);
  CHECK_THROWS_AS(early.fusion.wait_for_control(stream), LogicError);
}

RANK_CASE("buckets are neighbours, the first one small, and hold every slot once") {
  Model model(test::world().communicator(), layers, small_buckets);
  const auto buckets = model.fusion.buckets();
  CHECK(buckets.front().bytes <= small_buckets.first_bucket_bytes);
  CHECK(buckets.front().first_slot == 0);
  CHECK(buckets.back().end_slot == layers.size());
  for (std::size_t i = 1; i < buckets.size(); ++i) {
    CHECK(buckets[i].first_slot == buckets[i - 1].end_slot);
    CHECK((buckets[i].bytes <= small_buckets.bucket_bytes || buckets[i].end_slot == buckets[i].first_slot + 1));
  }
  CHECK(model.fusion.describe().size() == buckets.size());
}

RANK_CASE("a model without parameters has a step too") {
  Model model(test::world().communicator(), {});
  CpuStream stream;
  model.fusion.begin();
  model.fusion.control().metric = 2;
  model.fusion.wait(stream);
  CHECK(model.fusion.control().metric == 2 * model.communicator.size());
}

RANK_CASE("misuse of a step is told by the parameter's name") {
  Model model(test::world().communicator(), {10, 20});
  CpuStream stream;
  CHECK_THROWS_AS(model.fusion.mark_ready(ParameterId{0}, stream), LogicError);  // outside a step
  model.fusion.begin();
  CHECK_THROWS_AS(model.fusion.mark_ready(ParameterId{9}, stream), LogicError);  // unknown
  model.fusion.mark_ready(ParameterId{0}, stream);
  CHECK_THROWS_AS(model.fusion.mark_ready(ParameterId{0}, stream), LogicError);  // twice
  CHECK_THROWS_AS(model.fusion.wait(stream), LogicError);                        // one missing
  CHECK_THROWS_AS(model.fusion.begin(), LogicError);                             // not waited for
  model.fusion.mark_ready(ParameterId{1}, stream);
  model.fusion.wait(stream);
}

}  // namespace
}  // namespace ronda::fusion_buffer_test
