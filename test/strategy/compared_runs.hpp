#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/step/strategy.hpp>

#include "strategy/device_run.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

namespace ronda::test {

// What tests share that compare a strategy whose ranks divide something with mirrored replicas.

/// In a node's memory, where all ranks are on one node, and by messages.
inline constexpr AllreduceAlgorithm exchanges[] = {AllreduceAlgorithm::automatic, AllreduceAlgorithm::ring};

/// Its biases end within a line of memory.
inline Sequential three_layers() { return Sequential(Flatten(), Dense(33), ReLU(), Dense(7), ReLU(), Dense(4)); }

inline ParameterGroup pruned_weights(std::string_view name) { return {.pruned = name.ends_with(".weight")}; }
inline ParameterGroup some_frozen(std::string_view name) {
  return {.rate_factor = name.ends_with(".bias") ? 0.5 : 1, .weight_decay = {}, .frozen = name == "conv2.weight"};
}

/// `set` with accumulation; with clipping by the norm, too; and with the finite check and an average instead.
inline std::array<DeviceSet, 3> with_all_that_steps_do(DeviceSet set) {
  std::array<DeviceSet, 3> sets;
  set.micro_batches = 3;
  sets[0] = set;
  set.clip_norm = 0.1;
  sets[1] = set;
  set.micro_batches = 1;
  set.clip_norm = 0;
  set.check_gradients = true;
  set.ema_decay = 0.9;
  sets[2] = set;
  return sets;
}

/// Calls check(set, model) with each of these, by each exchange: with the dense model, and with the convolutions.
template <class Check>
void check_all_that_steps_do(std::initializer_list<const char*> optimizers, Sequential (*dense)(),
                             Sequential (*convolutions)(), const Check& check) {
  for (const char* optimizer : optimizers)
    for (const AllreduceAlgorithm algorithm : exchanges) {
      INFO(optimizer << " by " << name_of(algorithm));
      const auto [accumulating, clipping, averaging] =
          with_all_that_steps_do({.global_batch = 50, .optimizer = optimizer, .library = true, .algorithm = algorithm});
      check(accumulating, dense);
      check(clipping, convolutions);
      check(averaging, convolutions);
    }
}

using Numbers = std::map<std::string, std::vector<float>>;

/// The states in float32 that it is shown, in file layout, by name.
struct NumbersOf final : StateVisitor {
  void visit(const State& state) override {
    if (state.tensor.dtype() == DType::float32) all.emplace(state.name, to_file(state));
  }
  Numbers all;
};

/// What every rank has whole.
inline Numbers shown_by(Strategy& strategy) {
  NumbersOf reader;
  strategy.visit(reader);
  return std::move(reader.all);
}
/// What layers keep, on this rank.
inline Numbers layer_states_of(Strategy& strategy) {
  NumbersOf reader;
  strategy.state().visit_layer_states(reader);
  return std::move(reader.all);
}

/// All of `found` is in `expected`, with the same bits.
inline void check_same_numbers(const Numbers& found, const Numbers& expected) {
  for (const auto& [name, numbers] : found) {
    INFO(name);
    REQUIRE(expected.contains(name));
    CHECK(numbers == expected.at(name));
  }
}

/// Steps of `whole`, and of `other`: the same losses and norms.
inline void check_same_steps(DeviceRun& whole, DeviceRun& other, std::size_t steps) {
  for (std::size_t k = 0; k < steps; ++k) {
    const StepResult a = whole.step(), b = other.step();
    CHECK(b.loss == a.loss);
    CHECK(b.gradient_norm == a.gradient_norm);
  }
}

/// Both overflow, in their updates, and tell the same cause.
inline void check_same_cause(DeviceRun& whole, DeviceRun& other) {
  std::vector<std::string> told;
  for (DeviceRun* run : {&whole, &other}) {
    run->step();
    run->strategy.state().set_rate_factor(1e300);
    CHECK(run->step().spoiled);
    told.push_back(run->strategy.explain_nonfinite(run->loader.next()));
  }
  CHECK(told[1] == told[0]);
}

inline std::int64_t sum_over_ranks(std::int64_t mine) {
  Communicator all = everybody();
  all.allreduce(Tensor(std::span(&mine, 1)));
  return mine;
}

/// What a run by `set` throws.
inline std::string refusal_of(const DeviceSet& set, Sequential model = mlp()) {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  return message_of<InputError>([&] { DeviceRun(everybody(), nullptr, std::move(model), data, set); });
}

}  // namespace ronda::test
