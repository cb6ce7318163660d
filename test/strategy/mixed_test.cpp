// Trainings in half types on devices that are threads: float32 masters, a loss scale that follows the gradients, and
// steps that overflow.
#include "strategy/device_run.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

#include <map>

#include <ronda/core/error.hpp>
#include <ronda/core/number.hpp>

using namespace ronda;
using namespace ronda::test;

namespace mixed_test {
namespace {

constexpr DType halves[] = {DType::float16, DType::bfloat16};

/// What layers read is what the optimizer keeps, rounded.
bool rounded(const MirroredStrategy& strategy) {
  for (const Parameter& p : strategy.parameters()) {
    const auto masters = floats_of(Tensor(p.master->desc(), p.master->data()));
    const auto read = floats_of(Tensor(p.value.desc(), p.value.data()));
    for (std::size_t i = 0; i < read.size(); ++i) {
      const float expected = p.value.dtype() == DType::float16 ? to_float(to_half<Float16>(masters[i]))
                                                               : to_float(to_half<BFloat16>(masters[i]));
      if (read[i] != expected) return false;
    }
  }
  return true;
}

/// The states by name; these devices' memory can be written as well.
struct States final : StateVisitor {
  explicit States(MirroredStrategy& strategy) { strategy.visit(*this); }
  void visit(const State& state) override { all.emplace(state.name, state.tensor); }
  [[nodiscard]] float& number(const std::string& name) const { return *all.at(name).pointer<float>(); }
  std::map<std::string, Tensor> all;
};

/// As `rounded`, of work that the device may still be at.
bool rounded(const DeviceRun& run) {
  run.stream().synchronize();
  return rounded(run.strategy);
}

double mean_loss(DeviceRun& run, std::size_t steps) {
  double sum = 0;
  for (std::size_t k = 0; k < steps; ++k) sum += run.step().loss;
  return sum / static_cast<double>(steps);
}

}  // namespace

TEST_CASE("a graph with branches and a shared layer trains in half types near float32", "[arithmetic]") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);
  DeviceRun exact(everybody(), nullptr, branching_model(), data, {.optimizer = "sgd", .clip_norm = 1});
  const double loss = mean_loss(exact, 12);
  const Devices devices(everybody(), AllreduceAlgorithm::nccl);
  DeviceRun run(devices, branching_model(), data, {.optimizer = "sgd", .clip_norm = 1, .dtype = DType::bfloat16});
  CHECK(mean_loss(run, 12) == Approx(loss).epsilon(0.05));
  CHECK(rounded(run));
  CHECK_FALSE(run.strategy.parameter_hash().empty());
}

TEST_CASE("half types train near float32, and all replicas stay one") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);  // the last batch has 2 samples, so ranks stay empty
  for (const auto way : ways) {
    const Devices devices(everybody(), way);
    for (const char* optimizer : {"nesterov", "adamw"}) {
      DeviceRun exact(devices, mlp(), data, {.optimizer = optimizer, .clip_norm = 1});
      const double loss = mean_loss(exact, 12);
      for (const DType dtype : halves) {
        INFO(name_of(way) << ", " << optimizer << ", " << name_of(dtype));
        DeviceRun run(devices, mlp(), data, {.optimizer = optimizer, .clip_norm = 1, .dtype = dtype});
        CHECK(run.strategy.parameters()[0].value.dtype() == dtype);
        CHECK(run.strategy.parameters()[0].gradient.dtype() == dtype);
        CHECK(run.strategy.memory().gradients * 2 <= exact.strategy.memory().gradients + 1024);
        CHECK(rounded(run));
        if (dtype == DType::float16) States(run.strategy).number("loss_scale") = 1024;  // that these gradients bear
        CHECK(mean_loss(run, 12) == Approx(loss).epsilon(0.05));  // factors of 8 and 11 bits, and 12 steps
        CHECK(run.strategy.updates() == 12);
        CHECK(rounded(run));
        CHECK_FALSE(run.strategy.parameter_hash().empty());  // throws where replicas differ
        const Evaluation a = exact.strategy.evaluate(exact.loader), b = run.strategy.evaluate(run.loader);
        CHECK(b.loss == Approx(a.loss).epsilon(0.1).margin(0.02));
        CHECK(b.metric == Approx(a.metric).margin(0.05));
      }
    }
  }
}

TEST_CASE("a gradient beyond float16 on one rank: no rank applies the step, and the scale is halved on all") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  for (const auto way : ways) {
    const Devices devices(everybody(), way);
    DeviceRun run(devices, mlp(), data, {.global_batch = 32, .optimizer = "adamw", .dtype = DType::float16});
    const States states(run.strategy);
    double scale = 0x1p16;
    for (int k = 0; k < 4; ++k) {  // given, recorded, replayed
      const auto before = run.parameters();
      const Batch& batch = run.loader.next();
      if (world().rank() + 1 == world().size()) batch.weights().pointer<float>()[0] = 1e6F;  // the loss stays finite
      const StepResult result = run.strategy.train_step(batch);
      scale /= 2;
      CHECK(result.overflow);
      CHECK_FALSE(result.nonfinite);
      CHECK(result.loss_scale == scale);
      CHECK(states.number("loss_scale") == scale);
      CHECK(states.number("loss_scale.good_steps") == 0);
      CHECK(run.parameters() == before);
      CHECK(run.strategy.updates() == 0);
    }
    const StepResult result = run.step();
    CHECK_FALSE(result.overflow);
    CHECK(result.loss_scale == scale);
    CHECK(states.number("loss_scale.good_steps") == 1);
    CHECK(run.strategy.updates() == 1);
    CHECK_FALSE(run.strategy.parameter_hash().empty());
    DeviceRun wide(devices, mlp(), data, {.global_batch = 32, .dtype = DType::bfloat16});
    const Batch& batch = wide.loader.next();
    if (world().rank() + 1 == world().size()) batch.weights().pointer<float>()[0] = 1e6F;
    CHECK_FALSE(wide.strategy.train_step(batch).overflow);  // it has float32's range
    CHECK(wide.strategy.updates() == 1);
  }
}

TEST_CASE("a training finds its scale, and learns from there on") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);
  const Devices devices(everybody(), AllreduceAlgorithm::nccl);
  DeviceRun run(devices, mlp(), data, {.dtype = DType::float16});
  States(run.strategy).number("loss_scale") = 0x1p30F;
  std::uint64_t overflows = 0;
  double loss = 0;
  for (std::uint64_t k = 1; k <= 40; ++k) {
    const StepResult result = run.step();
    overflows += result.overflow ? 1 : 0;
    loss = result.loss;
    CHECK(run.strategy.updates() + overflows == k);
  }
  CHECK(overflows > 8);
  CHECK(overflows < 25);
  CHECK(loss < 0.5);  // of log 4
}

TEST_CASE("a loss that is not finite is no overflow: the scale stays") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  const Devices devices(everybody(), AllreduceAlgorithm::nccl);
  DeviceRun run(devices, mlp(), data, {.global_batch = 32, .dtype = DType::float16});
  const Batch& batch = run.loader.next();
  if (world().rank() == 0) batch.target().pointer<std::int32_t>()[0] = 4;  // no such class
  const StepResult result = run.strategy.train_step(batch);
  CHECK(result.nonfinite);
  CHECK_FALSE(result.overflow);
  CHECK(result.loss_scale == 0x1p16);
  CHECK(run.strategy.explain_nonfinite(batch).find("the loss") != std::string::npos);
}

TEST_CASE("the scale is doubled after 2000 good steps, and a state like any other") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  const Devices devices(everybody(), AllreduceAlgorithm::nccl);
  DeviceRun run(devices, mlp(), data, {.global_batch = 32, .dtype = DType::float16});
  const States states(run.strategy);
  states.number("loss_scale") = 1024;
  states.number("loss_scale.good_steps") = 1997;
  for (int k = 0; k < 2; ++k) CHECK(run.step().loss_scale == 1024);
  CHECK(run.step().loss_scale == 2048);
  CHECK(states.number("loss_scale.good_steps") == 0);
  DeviceRun wide(devices, mlp(), data, {.global_batch = 32, .dtype = DType::bfloat16});
  CHECK_FALSE(States(wide.strategy).all.contains("loss_scale"));
  CHECK(wide.step().loss_scale == 1);
}

TEST_CASE("replayed steps in half types have the bits of steps given call by call, and the host waits once a step") {
  const MemoryDataset data = toy_images(90, {12, 12, 1}, 4);
  const Devices devices(everybody(), AllreduceAlgorithm::nccl);
  for (const DType dtype : halves) {
    DeviceSet set{.global_batch = 25, .dtype = dtype};
    DeviceRun replayed(devices, cnn(), data, set);
    set.record = false;
    DeviceRun given(devices, cnn(), data, set);
    for (int k = 0; k < 6; ++k) {
      const int waits = replayed.stream().host_waits();
      CHECK(replayed.step().loss == given.step().loss);
      CHECK(replayed.stream().host_waits() == waits + 1);
    }
    CHECK(replayed.parameters() == given.parameters());
    CHECK(rounded(replayed));
  }
}

TEST_CASE("what is set are the float32 parameters; layers read them rounded, and outputs are shown in float32") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  const Devices devices(everybody(), AllreduceAlgorithm::staged);
  DeviceRun run(devices, mlp(), data, {.global_batch = 32, .dtype = DType::bfloat16});
  const auto set = [&](float value) {
    for (const auto& p : run.strategy.parameters())
      std::ranges::fill(std::span(p.trained().pointer<float>(), 4), value + static_cast<float>(world().rank()));
  };
  set(1.0F / 3);
  run.strategy.broadcast_parameters();
  CHECK_FALSE(run.strategy.parameter_hash().empty());
  CHECK(rounded(run));
  CHECK(run.parameters()[0] == 1.0F / 3);
  set(0.2F);
  run.strategy.state().set_updates(7);  // as after a checkpoint was read
  CHECK(rounded(run));
  CHECK(run.strategy.updates() == 7);
  run.strategy.evaluate(run.loader, [&](const Batch&, const Tensor& outputs) {
    CHECK(outputs.dtype() == DType::float32);
    CHECK(outputs.device() == Device{});
  });
}

TEST_CASE("micro-batches in half types are summed in float32, and a sum beyond float16 is no update") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);
  for (const auto way : ways) {
    const Devices devices(everybody(), way);
    DeviceRun exact(devices, mlp(), data, {.global_batch = 96, .micro_batches = 3});
    const double loss = mean_loss(exact, 12);
    for (const DType dtype : halves) {
      INFO(name_of(way) << ", " << name_of(dtype));
      DeviceRun run(devices, mlp(), data, {.global_batch = 96, .micro_batches = 3, .dtype = dtype});
      CHECK(run.strategy.memory().gradients * 4 <= exact.strategy.memory().gradients * 3 + 4096);
      if (dtype == DType::float16) States(run.strategy).number("loss_scale") = 1024;
      CHECK(mean_loss(run, 12) == Approx(loss).epsilon(0.05));  // as of whole batches
      CHECK(run.strategy.updates() == 12);
      CHECK(rounded(run));
      CHECK_FALSE(run.strategy.parameter_hash().empty());
    }
    DeviceRun run(devices, mlp(), data, {.global_batch = 96, .micro_batches = 3, .dtype = DType::float16});
    const Batch& first = run.loader.next();
    if (world().rank() + 1 == world().size()) first.weights().pointer<float>()[0] = 1e6F;  // the loss stays finite
    run.strategy.accumulate(first);
    run.strategy.accumulate(run.loader.next());
    const StepResult result = run.strategy.train_step(run.loader.next());
    CHECK(result.overflow);
    CHECK_FALSE(result.nonfinite);
    CHECK(run.strategy.updates() == 0);
  }
}

TEST_CASE("half types train on the processor as on a device, whose bits they have on one rank") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);
  const Devices devices(alone(), AllreduceAlgorithm::staged);
  for (const DType dtype : halves)
    for (const std::size_t micro_batches : {1, 3}) {
      INFO(name_of(dtype) << ", " << micro_batches << " micro-batches");
      const DeviceSet set{.optimizer = "adamw", .clip_norm = 1, .micro_batches = micro_batches, .dtype = dtype};
      DeviceRun processor(alone(), nullptr, mlp(), data, set), device(devices, mlp(), data, set);
      CHECK(processor.strategy.parameters()[0].value.dtype() == dtype);
      CHECK(processor.strategy.parameters()[0].master);
      for (int k = 0; k < 12; ++k) {
        const StepResult here = processor.step(), there = device.step();
        CHECK(here.loss == there.loss);
        CHECK(here.overflow == there.overflow);
        CHECK(here.loss_scale == there.loss_scale);
        CHECK(here.gradient_norm == there.gradient_norm);
        CHECK(rounded(processor.strategy));
      }
      CHECK(processor.parameters() == device.parameters());
      CHECK(processor.strategy.updates() == device.strategy.updates());
    }
}

TEST_CASE("half types on the processors of all ranks: near float32, one replica, an overflow on one rank stops all",
          "[arithmetic]") {
  const MemoryDataset data = toy_images(302, {12, 12, 1}, 4);
  DeviceRun exact(everybody(), nullptr, cnn(), data, {.optimizer = "adamw"});
  const double loss = mean_loss(exact, 12);
  for (const DType dtype : halves) {
    DeviceRun run(everybody(), nullptr, cnn(), data, {.optimizer = "adamw", .dtype = dtype});
    if (dtype == DType::float16) States(run.strategy).number("loss_scale") = 1024;  // that these gradients bear
    CHECK(mean_loss(run, 12) == Approx(loss).epsilon(0.05));  // factors of 8 and 11 bits, and 12 steps
    CHECK(run.strategy.updates() == 12);
    CHECK_FALSE(run.strategy.parameter_hash().empty());  // throws where replicas differ
    if (dtype != DType::float16) continue;
    const Batch& batch = run.loader.next();
    if (world().rank() + 1 == world().size()) batch.weights().pointer<float>()[0] = 1e9F;  // the loss stays finite
    const StepResult result = run.strategy.train_step(batch);
    CHECK(result.overflow);
    CHECK(result.loss_scale == 512);
    CHECK(run.strategy.updates() == 12);
  }
}

TEST_CASE("the processor's own layers train in bfloat16 near float32, summed over the ranks in either type",
          "[arithmetic]") {
  const MemoryDataset data = toy_images(302, {12, 12, 1}, 4);  // the last batch has 2 samples, so ranks stay empty
  for (const std::size_t micro_batches : {1, 3}) {
    for (const auto reduced : {std::optional<DType>(), std::optional(DType::float32)}) {
      INFO(micro_batches << " micro-batches" << (reduced ? ", summed in float32" : ""));
      DeviceSet set{
          .optimizer = "adamw", .clip_norm = reduced ? 1.0 : 0.0, .micro_batches = micro_batches, .library = true};
      DeviceRun exact(everybody(), nullptr, cnn(), data, set);
      const double loss = mean_loss(exact, 12);
      set.dtype = DType::bfloat16;
      set.reduce_dtype = reduced;
      DeviceRun run(everybody(), nullptr, cnn(), data, set);
      set.picks = run.strategy.plan().picks;
      DeviceRun again(everybody(), nullptr, cnn(), data, set);
      CHECK(run.strategy.parameters()[0].value.dtype() == DType::bfloat16);
      CHECK(run.strategy.parameters()[0].gradient.dtype() == DType::bfloat16);
      CHECK(mean_loss(run, 12) == Approx(loss).epsilon(0.05));  // factors of 8 bits, and 12 steps
      CHECK(run.strategy.updates() == 12);
      CHECK(rounded(run.strategy));
      CHECK_FALSE(run.strategy.parameter_hash().empty());  // throws where replicas differ
      again.steps(12);
      CHECK(again.parameters() == run.parameters());
    }
  }
}

TEST_CASE("of one rank's gradients a sum in float32 has the bits of one in bfloat16") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);
  for (const char* optimizer : {"sgd", "adamw"}) {
    DeviceSet set{.optimizer = optimizer, .dtype = DType::bfloat16};
    DeviceRun half(alone(), nullptr, mlp(), data, set);
    set.reduce_dtype = DType::float32;
    DeviceRun wide(alone(), nullptr, mlp(), data, set);
    half.steps(7);
    wide.steps(7);
    CHECK(wide.parameters() == half.parameters());
    CHECK(wide.strategy.memory().gradients > half.strategy.memory().gradients);
    CHECK(rounded(wide.strategy));
  }
  DeviceSet set{.dtype = DType::bfloat16};
  set.reduce_dtype = DType::float16;
  CHECK_THROWS_WITH(DeviceRun(alone(), nullptr, mlp(), data, set), Contains("not in float16"));
}

}  // namespace mixed_test
