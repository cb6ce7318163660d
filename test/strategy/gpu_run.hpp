#pragma once
#include <exception>
#include <string>
#include <vector>

#include <ronda/layers/layers.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>

#include "support/ranks.hpp"
#include "support/toy_data.hpp"

namespace ronda::test {

struct Set {
  bool gpu = false;
  std::string optimizer = "nesterov";
  double clip_norm = 0;
  Precision precision = Precision::float32;
  bool record = true;
  AllreduceAlgorithm way = AllreduceAlgorithm::automatic;
  Picks picks = {};  ///< of another run: bits are equal for an equal plan, and what is timed anew may be picked anew
  bool keep_data = false;
  std::size_t in_flight = 1;
  DeviceContext* ahead = nullptr;  ///< batches are put together beforehand, by another thread, in its pinned memory
};

/// A strategy on the processors of these ranks, or on a GPU each.
struct Run {
  Run(const Communicator& ranks, Sequential m, const MemoryDataset& data, const Set& set)
      : communicator(ranks.split(0, ranks.rank())),
        model(std::move(m)),
        plan(data.size(), 48, shard_of(communicator), 1),  // the last batch is short
        loader(data, SampleOrder(data.size(), 1, true), plan,
               {.prefetch = set.ahead != nullptr,
                .contents = set.keep_data ? BatchContents::samples : BatchContents::values,
                .kept = set.in_flight,
                .staging = set.ahead}),
        strategy(communicator, model, loss, make_optimizer({.name = set.optimizer}),
                 Schedule({.name = "cosine", .learning_rate = 0.02, .total_steps = 300}), options(data, set)) {}
  Run(Sequential m, const MemoryDataset& data, const Set& set) : Run(world().communicator(), std::move(m), data, set) {}
  Run(const Run&) = delete;
  /// A slower rank may still read this one's memory.
  ~Run() {
    if (std::uncaught_exceptions() == 0) communicator.barrier();
  }

  MirroredOptions options(const MemoryDataset& data, const Set& set) {
    MirroredOptions o = MirroredOptions::for_data(data, plan);
    o.clip_norm = set.clip_norm;
    o.fusion.algorithm = set.way;
    o.picks = set.picks;
    if (!set.gpu) return o;
    o.fusion.first_bucket_bytes = 1024;  // several buckets even for small models
    o.fusion.bucket_bytes = 8192;
    o.record_steps = set.record;
    o.steps_in_flight = set.in_flight;
    if (set.keep_data) o.device_data.sets = {&data};
    const auto gpus = static_cast<int>(find_gpus().gpus.size());
    o.platform.device = device =
        ComputeDevice::on(make_cuda_context(world().communicator().topology().rank_on_node % gpus));
    o.platform.primitives = make_cudnn_primitives(*device.context, *device.stream, {set.precision});
    return o;
  }
  /// The mean loss of so many steps.
  double steps(std::size_t count) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += strategy.train_step(loader.next()).loss;
    return sum / static_cast<double>(count);
  }
  /// The losses of so many steps, with as many in flight as may be.
  std::vector<double> losses_ahead(std::size_t count) {
    std::vector<double> losses;
    for (std::size_t begun = 0; losses.size() < count;)
      if (begun < count && strategy.steps_in_flight() < strategy.max_in_flight()) {
        strategy.begin_step(loader.next());
        ++begun;
      } else {
        losses.push_back(strategy.finish_step().loss);
      }
    return losses;
  }
  [[nodiscard]] std::vector<float> parameters() const {
    std::vector<float> all;
    for (const auto& p : strategy.parameters()) {
      const auto values = to_file(p, p.trained());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  Communicator communicator;
  ComputeDevice device;  ///< empty on the processor
  Sequential model;
  SoftmaxCrossEntropy loss;
  BatchPlan plan;
  BatchLoader loader;
  MirroredStrategy strategy;
};

inline Sequential mlp() { return Sequential(Flatten(), Dense(64), ReLU(), Dense(10)); }
inline Sequential cnn() {
  return Sequential(Conv2d(16, 3), ReLU(), MaxPool2d(2), Conv2d(16, 3), ReLU(), Flatten(), Dense(10));
}

}  // namespace ronda::test
