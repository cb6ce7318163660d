#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/layers/layers.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>
#include <ronda/runtime/strategy/strategies.hpp>

#include "strategy/timed_picks.hpp"
#include "support/devices.hpp"
#include "support/fake_training.hpp"
#include "support/ranks.hpp"
#include "support/rounded_primitives.hpp"

namespace ronda::test {

/// How devices' gradients are summed.
inline constexpr AllreduceAlgorithm ways[] = {AllreduceAlgorithm::staged, AllreduceAlgorithm::nccl};

inline Sequential mlp() { return Sequential(Flatten(), Dense(33), ReLU(), Dense(4)); }
inline Sequential cnn() {
  return Sequential(Conv2d(8, 3), ReLU(), MaxPool2d(2), Conv2d(8, 3), ReLU(), Flatten(), Dense(4));
}

inline Communicator everybody() { return world().communicator(); }
inline Communicator alone() { return world().communicator().split(world().rank(), 0); }

struct DeviceSet {
  std::size_t global_batch = 100;
  std::string optimizer = "nesterov";
  double clip_norm = 0;
  bool check_gradients = false;
  bool record = true;
  bool keep_data = false;  ///< on the devices, if they have the room
  std::size_t memory_limit = 0;
  std::size_t in_flight = 1;
  bool ahead = false;  ///< batches are put together beforehand, by another thread, in pinned memory
  std::size_t micro_batches = 1;
  DType dtype = DType::float32;  ///< of the layers
  bool library = false;          ///< on the processor: its own layers, not the plain loops
  std::optional<DType> reduce_dtype = {};
  double ema_decay = 0;
  std::optional<std::size_t> node_update_bytes = {};
  std::function<ParameterGroup(std::string_view)> group_of = {};
  Picks picks = {};  ///< of another run, for equal bits; others are timed
  StrategyOptions strategy = {};
  Compression compression = Compression::none;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic;
  MakeUpdater make_updater = {};  ///< on the processor; empty: the usual one
};

/// Values with several readers, sums with and without a ReLU, a concatenation, and a layer that is used twice.
inline Sequential branching_model() {
  const Conv2d twice(6, 3, 1, 1);
  return Sequential(Conv2d(6, 3), Residual(Sequential(twice, ReLU(), twice)), ReLU(), Residual(GELU()),
                    Concat(Conv2d(4, 1), twice), Flatten(), Dense(4));
}

/// A strategy by plain loops, on the ranks' devices or, without any, on their processors.
struct DeviceRun {
  DeviceRun(const Communicator& communicator, const Devices* devices, Sequential m, const Dataset& data,
            const DeviceSet& set)
      : model(std::move(m)),
        plan(data.size(), set.global_batch, shard_of(communicator, set.strategy, true), set.micro_batches),
        loader(data, SampleOrder(data.size(), 1, true), plan,
               {.prefetch = set.ahead,
                .contents = set.keep_data ? BatchContents::samples : BatchContents::values,
                .kept = set.in_flight * set.micro_batches,
                .staging = set.ahead ? devices->device.get() : nullptr}),
        strategy(communicator, model, loss, make_optimizer({.name = set.optimizer}),
                 Schedule({.name = "cosine", .learning_rate = 0.05, .total_steps = 100}), options(data, devices, set)) {
    if (shares_timing(devices, set)) keep_timed(communicator, strategy.picks());
  }
  DeviceRun(const Devices& devices, Sequential m, const Dataset& data, const DeviceSet& set)
      : DeviceRun(devices.communicator, &devices, std::move(m), data, set) {}

  /// The library's layers are timed, and the plain loops are not; servers compute nothing.
  static bool shares_timing(const Devices* devices, const DeviceSet& set) {
    return devices == nullptr && set.library && set.strategy.as<ParameterServer>() == nullptr;
  }

  MirroredOptions options(const Dataset& data, const Devices* devices, const DeviceSet& set) {
    MirroredOptions o = MirroredOptions::for_data(data, plan);
    o.clip_norm = set.clip_norm;
    o.check_gradients = set.check_gradients;
    o.record_steps = set.record;
    o.reduce_dtype = set.reduce_dtype;
    o.ema_decay = set.ema_decay;
    o.node_update_bytes = set.node_update_bytes.value_or(o.node_update_bytes);
    o.group_of = set.group_of;
    o.picks = shares_timing(devices, set) ? with_timed(set.picks) : set.picks;
    o.strategy = set.strategy;
    o.fusion.algorithm = set.algorithm;
    o.fusion.compression = set.compression;
    o.fusion.first_bucket_bytes = 1024;  // several buckets even for small models
    o.fusion.bucket_bytes = 4096;
    if (devices != nullptr)
      o.platform.primitives = make_fake_primitives(set.dtype);
    else if (set.library)
      o.platform.primitives = make_onednn_primitives(1, set.dtype);
    else
      o.platform.primitives =
          set.dtype == DType::float32 ? make_reference_primitives() : make_rounded_primitives(set.dtype);
    o.platform.make_updater = set.make_updater;
    if (devices == nullptr) return o;
    o.platform.device = computing = ComputeDevice::on(devices->device);
    o.platform.make_updater = make_fake_updater;
    if (set.keep_data) o.device_data.sets = {&data};
    o.platform.gather = fake_gather;
    o.steps_in_flight = set.in_flight;
    o.memory_limit = set.memory_limit;
    return o;
  }
  /// The micro-batches of a step before the last, which is what is returned.
  const Batch& last_batch() {
    for (std::size_t micro = 1; micro < plan.micro_batches(); ++micro) strategy.accumulate(loader.next());
    return loader.next();
  }
  StepResult step() { return strategy.train_step(last_batch()); }
  void steps(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) step();
  }
  /// The same, with as many in flight as may be.
  std::vector<StepResult> steps_ahead(std::size_t count) {
    std::vector<StepResult> results;
    for (std::size_t begun = 0; results.size() < count;)
      if (begun < count && strategy.steps_in_flight() < strategy.max_in_flight()) {
        strategy.begin_step(last_batch());
        ++begun;
      } else {
        results.push_back(strategy.finish_step());
      }
    return results;
  }
  [[nodiscard]] FakeStream& stream() const { return dynamic_cast<FakeStream&>(*computing.stream); }
  /// The memory of these devices can be looked at, once they are done.
  [[nodiscard]] std::vector<float> parameters() const {
    std::vector<float> all;
    for (const auto& p : strategy.parameters()) {
      const auto values = to_file(p, Tensor(p.trained().desc(), p.trained().data()));
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  ComputeDevice computing;  ///< empty on the processor
  Sequential model;
  SoftmaxCrossEntropy loss;
  BatchPlan plan;
  BatchLoader loader;
  MirroredStrategy strategy;
};

}  // namespace ronda::test
