// Elastic averaging: against plain loops that simulate all ranks in one program; equal replicas where they are read.
#include "strategy/device_run.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>

using namespace ronda;
using namespace ronda::test;

namespace easgd_test {
namespace {

using Numbers = std::vector<double>;

constexpr std::size_t pixels = 63, classes = 4;

MemoryDataset images(std::size_t samples) { return toy_images(samples, {9, 7, 1}, static_cast<std::int32_t>(classes)); }
Sequential one_layer() { return Sequential(Flatten(), Dense(static_cast<std::int64_t>(classes))); }

/// Weights (classes, pixels), then biases: a step of sgd by softmax regression.
void plain_step(Numbers& parameters, const Batch& batch, double rate) {
  Numbers gradient(parameters.size());
  for (std::size_t row = 0; row < batch.real(); ++row) {
    const float* const input = batch.input().pointer<float>() + row * pixels;
    Numbers outputs(parameters.end() - classes, parameters.end());
    for (std::size_t c = 0; c < classes; ++c)
      for (std::size_t i = 0; i < pixels; ++i) outputs[c] += parameters[c * pixels + i] * input[i];
    double sum = 0;
    for (double& output : outputs) sum += output = std::exp(output);
    for (std::size_t c = 0; c < classes; ++c) {
      const auto right = static_cast<std::size_t>(batch.target().pointer<std::int32_t>()[row]);
      const double error = (outputs[c] / sum - (c == right ? 1 : 0)) / static_cast<double>(batch.real());
      for (std::size_t i = 0; i < pixels; ++i) gradient[c * pixels + i] += error * input[i];
      gradient[classes * pixels + c] += error;
    }
  }
  for (std::size_t i = 0; i < gradient.size(); ++i) parameters[i] -= rate * gradient[i];
}

/// All ranks and the center, by the formulas of the paper.
class Simulation {
 public:
  Simulation(const Dataset& data, std::size_t global_batch, std::size_t ranks, const Easgd& options,
             const std::vector<float>& first)
      : every_(options.communicate_every),
        rate_(options.moving_rate.value_or(0.9 / static_cast<double>(ranks))),
        center(first.begin(), first.end()),
        own(ranks, center) {
    for (std::size_t rank = 0; rank < ranks; ++rank)
      loaders_.push_back(std::make_unique<BatchLoader>(data, SampleOrder(data.size(), 1, true),
                                                       BatchPlan(data.size(), global_batch, Shard{rank, ranks})));
  }
  void step(double learning_rate) {
    for (std::size_t rank = 0; rank < own.size(); ++rank) plain_step(own[rank], loaders_[rank]->next(), learning_rate);
    if (++steps_ == every_) communicate();
  }
  void communicate() {
    for (std::size_t i = 0; i < center.size(); ++i) {
      double sum = 0;
      for (Numbers& values : own) {
        const double difference = rate_ * (values[i] - center[i]);
        values[i] -= difference;
        sum += difference;
      }
      center[i] += sum;
    }
    steps_ = 0;
  }
  /// As tests and checkpoints see it.
  void settle() {
    if (steps_ > 0) communicate();
    own.assign(own.size(), center);
  }

 private:
  std::uint64_t every_, steps_ = 0;
  double rate_;
  std::vector<std::unique_ptr<BatchLoader>> loaders_;

 public:
  Numbers center;
  std::vector<Numbers> own;
};

DeviceSet elastic_set(const Easgd& options, AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic) {
  return {.global_batch = 50, .optimizer = "sgd", .strategy = options, .algorithm = algorithm};
}

double distance(const std::vector<float>& a, const Numbers& b) {
  return relative_distance(a, std::vector<float>(b.begin(), b.end()));
}

bool on_all_ranks(bool mine) {
  std::int32_t all = mine ? 1 : 0;
  everybody().allreduce(Tensor(std::span(&all, 1)), ReduceOp::minimum);
  return all != 0;
}

bool equal_on_ranks(const std::vector<float>& numbers) {
  const std::string mine(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
  return on_all_ranks(everybody().broadcast_text(mine) == mine);
}

std::string refusal(const Easgd& options, Sequential model = mlp(), DeviceSet set = {}) {
  const MemoryDataset data = images(64);
  set.strategy = options;
  return message_of<InputError>([&] { DeviceRun(everybody(), nullptr, std::move(model), data, set); });
}

}  // namespace

TEST_CASE("each rank's parameters and the center are those of plain loops, in a node's memory and by a ring") {
  const MemoryDataset data = images(131);  // the last batch of an epoch is ragged
  const auto ranks = static_cast<std::size_t>(world().size());
  const Easgd some[] = {{.communicate_every = 1},
                        {.communicate_every = 3},
                        {.communicate_every = 4, .moving_rate = 0.1},
                        {.communicate_every = 2, .moving_rate = 1.0 / static_cast<double>(ranks)}};
  for (const AllreduceAlgorithm algorithm : {AllreduceAlgorithm::automatic, AllreduceAlgorithm::ring})
    for (const Easgd& options : some) {
      INFO("every " << options.communicate_every << " by " << name_of(algorithm));
      DeviceRun run(everybody(), nullptr, one_layer(), data, elastic_set(options, algorithm));
      Simulation expected(data, 50, ranks, options, run.parameters());
      for (int k = 0; k < 13; ++k) {
        expected.step(run.step().learning_rate);
        CHECK(distance(run.parameters(), expected.own[static_cast<std::size_t>(world().rank())]) < 1e-5);
        if (k != 7) continue;  // a test in the middle
        run.strategy.state().average_states();
        expected.settle();
        CHECK(equal_on_ranks(run.parameters()));
        CHECK(distance(run.parameters(), expected.center) < 1e-5);
      }
      run.strategy.state().gather_state();
      expected.settle();
      CHECK(equal_on_ranks(run.parameters()));
      CHECK(distance(run.parameters(), expected.center) < 1e-5);
    }
}

TEST_CASE("a communication tells the sums of all steps, and leaves replicas that differ") {
  const MemoryDataset data = images(400);
  DeviceRun run(everybody(), nullptr, mlp(), data, elastic_set({.communicate_every = 4}));
  CHECK(run.step().weight == 50);  // once at the start, so that there is a loss
  for (int k = 0; k < 2; ++k) CHECK(run.step().weight == 0);
  CHECK(run.step().weight == 150);
  CHECK(equal_on_ranks(run.parameters()) == (world().size() == 1));
  CHECK(run.strategy.exchange().report().synchronisations.count == 1);
  run.strategy.state().average_states();  // sends nothing: the center is known
  CHECK(equal_on_ranks(run.parameters()));
  CHECK(run.strategy.exchange().report().synchronisations.count == 1);
}

TEST_CASE("a requested communication makes replicas equal, and the count begins anew") {
  const MemoryDataset data = images(400);
  DeviceRun run(everybody(), nullptr, mlp(), data, elastic_set({.communicate_every = 4}));
  run.steps(1);
  run.strategy.synchronise_next();
  CHECK(run.step().weight == 50);
  CHECK(equal_on_ranks(run.parameters()));
  for (int k = 0; k < 3; ++k) CHECK(run.step().weight == 0);
  CHECK(run.step().weight == 200);
}

TEST_CASE("a stop that one rank requests reaches all at the next communication, with equal replicas") {
  const MemoryDataset data = images(400);
  DeviceRun run(everybody(), nullptr, mlp(), data, elastic_set({.communicate_every = 3}));
  run.steps(1);
  if (world().rank() + 1 == world().size()) run.strategy.request_stop();
  CHECK_FALSE(run.step().stop);
  run.strategy.raise({});
  CHECK(run.step().stop);
  CHECK(equal_on_ranks(run.parameters()));
  for (int k = 0; k < 3; ++k) CHECK_FALSE(run.step().stop);
}

TEST_CASE("a rank that asks to leave is heard long before the communication, by all after the same step") {
  const MemoryDataset data = images(400);
  DeviceRun run(everybody(), nullptr, mlp(), data, elastic_set({.communicate_every = 1'000'000}));
  run.steps(20);
  StepFlags flags;
  if (world().rank() + 1 == world().size()) flags.leave = 1;
  run.strategy.raise(flags);
  StepResult result = run.step();
  while (result.flags.leave == 0 && run.strategy.updates() < 100'000) result = run.step();
  CHECK(result.flags.leave == 1);
  CHECK(equal_on_ranks(run.parameters()));
}

TEST_CASE("values that a program sets are the new center") {
  const MemoryDataset data = images(400);
  DeviceRun run(everybody(), nullptr, mlp(), data, elastic_set({.communicate_every = 4}));
  run.steps(6);
  for (const Parameter& parameter : run.strategy.parameters())
    for (float& value : parameter.trained().as<float>()) value = 0.25;
  run.strategy.broadcast_parameters();
  run.strategy.state().set_rate_factor(0);
  run.steps(4);
  for (const float value : run.parameters()) REQUIRE(value == 0.25F);
}

TEST_CASE("all ranks receive a rank's step that is not finite, and parameters that a rank lost") {
  const MemoryDataset data = images(400);
  DeviceRun run(everybody(), nullptr, mlp(), data, elastic_set({.communicate_every = 3}));
  run.steps(1);
  Batch spoiled(data.fields(), run.plan.capacity());
  spoiled.copy_from(run.loader.next());
  if (world().rank() + 1 == world().size()) spoiled.input().as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  CHECK_FALSE(run.strategy.train_step(spoiled).nonfinite);
  const Batch& batch = run.loader.next();
  CHECK(run.strategy.train_step(batch).nonfinite);
  require_mentions(run.strategy.explain_nonfinite(batch),
                   {"on rank " + std::to_string(world().size() - 1), "1 of its steps", "step 2", "not finite"});
  for (int k = 0; k < 3; ++k) CHECK_FALSE(run.step().nonfinite);
  if (world().rank() == 0) run.strategy.state().set_rate_factor(1e300);
  for (int k = 0; k < 2; ++k) CHECK_FALSE(run.step().spoiled);
  CHECK(run.step().spoiled);
}

TEST_CASE("tests and checkpoints see equal averages and optimizer states") {
  const MemoryDataset data = images(400);
  DeviceSet set = elastic_set({.communicate_every = 3});
  set.optimizer = "adam";
  set.ema_decay = 0.9;
  DeviceRun run(everybody(), nullptr, mlp(), data, set);
  run.steps(4);
  run.strategy.state().gather_state();
  struct Reader final : StateVisitor {
    void visit(const State& state) override {
      if (state.scope == Scope::replicated) equal = equal_on_ranks(to_file(state)) && equal;
    }
    bool equal = true;
  } reader;
  run.strategy.visit(reader);
  CHECK(reader.equal);
}

TEST_CASE("elastic averaging that is not possible is refused, with the remedy") {
  require_mentions(refusal({.communicate_every = 0}), {".communicate_every"});
  for (const double bad : {0.0, -0.5, 1.01 / world().size(), std::nan("")})
    require_mentions(refusal({.moving_rate = bad}), {".moving_rate", "at most 1 / ranks"});
  require_mentions(refusal({}, mlp(), {.dtype = DType::bfloat16}), {"bfloat16", ".strategy = easgd"});
  if (world().size() > 1)
    require_mentions(refusal({}, Sequential(Flatten(), Dense(9), SyncBatchNorm(), ReLU(), Dense(4))),
                     {"SyncBatchNorm", ".strategy = easgd"});
  const Devices devices(everybody(), AllreduceAlgorithm::staged);
  const MemoryDataset data = images(64);
  require_mentions(message_of<InputError>([&] { DeviceRun(devices, mlp(), data, {.strategy = Easgd()}); }),
                   {"GPU", ".strategy = easgd", ".device = cpu"});
}

}  // namespace easgd_test
