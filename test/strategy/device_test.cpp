// Ranks that train on devices of their own: devices are threads here, layers plain loops, and the update what a GPU's
// kernels compute. What goes between the ranks is real, through the host's memory, or NCCL's stand-in.
#include "strategy/device_run.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/sanitizer.hpp"
#include "support/toy_data.hpp"

#include <algorithm>
#include <utility>

using namespace ronda;
using namespace ronda::test;

namespace device_test {
namespace {

bool same(const StepResult& a, const StepResult& b) {
  return a.loss == b.loss && a.metric == b.metric && a.weight == b.weight && a.learning_rate == b.learning_rate &&
         a.gradient_norm == b.gradient_norm && a.nonfinite == b.nonfinite && a.stop == b.stop;
}

}  // namespace

TEST_CASE("one device gives the processor's bits") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);
  const Devices devices(alone(), AllreduceAlgorithm::staged);
  for (const char* optimizer : {"sgd", "nesterov", "adamw", "lars", "rmsprop", "lamb"}) {
    DeviceRun cpu(alone(), nullptr, mlp(), data, {.optimizer = optimizer});
    DeviceRun gpu(devices, mlp(), data, {.optimizer = optimizer});
    CHECK(gpu.parameters() == cpu.parameters());
    for (int k = 0; k < 9; ++k) CHECK(same(gpu.step(), cpu.step()));
    CHECK(gpu.parameters() == cpu.parameters());
    CHECK(gpu.strategy.updates() == 9);
    CHECK(gpu.strategy.parameter_hash() == cpu.strategy.parameter_hash());
  }
}

TEST_CASE("a graph with branches and a shared layer gives the processor's bits on a device", "[arithmetic]") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);
  const Devices devices(alone(), AllreduceAlgorithm::staged);
  const DeviceSet set{.optimizer = "sgd"};
  DeviceRun cpu(alone(), nullptr, branching_model(), data, set);
  DeviceRun gpu(devices, branching_model(), data, set);
  for (int k = 0; k < 6; ++k) CHECK(same(gpu.step(), cpu.step()));
  CHECK(gpu.parameters() == cpu.parameters());
  const Devices many(everybody(), AllreduceAlgorithm::nccl);
  DeviceRun all(many, branching_model(), data, set);
  all.steps(6);
  CHECK(relative_distance(all.parameters(), cpu.parameters()) < 1e-4);
  CHECK_FALSE(all.strategy.parameter_hash().empty());  // throws where replicas differ
}

TEST_CASE("any number of devices trains what one does, exactly weighted") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);  // the last batch has 2 samples, so ranks stay empty
  const Devices single(alone(), AllreduceAlgorithm::staged);
  for (const auto way : ways) {
    const Devices devices(everybody(), way);
    for (const char* optimizer : {"sgd", "adamw"})
      for (const double clip : {0.0, 0.1}) {
        const DeviceSet set{.optimizer = optimizer, .clip_norm = clip};
        DeviceRun one(single, mlp(), data, set), many(devices, mlp(), data, set);
        CHECK(many.strategy.exchange().report().buckets.size() > 1);
        if (world().size() > 1) CHECK(many.strategy.exchange().report().buckets[0].algorithm == name_of(way));
        for (std::size_t k = 0; k < 2 * one.plan.steps_per_epoch(); ++k) {
          const StepResult a = one.step(), b = many.step();
          CHECK(b.weight == a.weight);  // counts are exact
          CHECK(b.loss == Approx(a.loss).epsilon(1e-4));
          CHECK(b.gradient_norm == Approx(a.gradient_norm).epsilon(1e-3));
        }
        // Sums in another order: a few roundings of 6e-8 a step, grown by eight steps.
        CHECK(relative_distance(many.parameters(), one.parameters()) < 1e-4);
        CHECK_FALSE(many.strategy.parameter_hash().empty());  // throws where replicas differ
        const Evaluation a = one.strategy.evaluate(one.loader), b = many.strategy.evaluate(many.loader);
        CHECK(b.metric == Approx(a.metric).margin(1.0 / 302));
        CHECK(b.loss == Approx(a.loss).epsilon(1e-4));
      }
  }
}

TEST_CASE("replayed steps have the bits of steps given call by call, also after an evaluation") {
  const MemoryDataset data = toy_images(90, {12, 12, 1}, 4);
  for (const auto way : ways) {
    const Devices devices(everybody(), way);
    const bool records = way == AllreduceAlgorithm::nccl || world().size() == 1;  // otherwise the host has to wait
    DeviceSet set{.global_batch = 25, .clip_norm = 1};
    DeviceRun replayed(devices, cnn(), data, set);
    set.record = false;
    DeviceRun eager(devices, cnn(), data, set);
    for (int round = 0; round < 2; ++round) {
      for (int k = 0; k < 6; ++k) CHECK(same(replayed.step(), eager.step()));
      const Evaluation a = replayed.strategy.evaluate(replayed.loader), b = eager.strategy.evaluate(eager.loader);
      CHECK(a.loss == b.loss);
      CHECK(a.metric == b.metric);
    }
    CHECK(replayed.parameters() == eager.parameters());
    CHECK_FALSE(replayed.strategy.parameter_hash().empty());
    CHECK(devices.device->recordings == (records ? 1 : 0));
    CHECK_FALSE(replayed.stream().recording());
  }
}

TEST_CASE("the host waits once a step, at its end, where NCCL connects the devices") {
  const MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  const Devices devices(everybody(), AllreduceAlgorithm::nccl);
  for (const bool record : {true, false}) {
    DeviceRun run(devices, mlp(), data, {.global_batch = 30, .record = record});
    run.steps(3);
    const int before = run.stream().host_waits();
    run.steps(5);
    CHECK(run.stream().host_waits() == before + 5);
  }
}

TEST_CASE("data that devices keep trains and tests to the bits of data that is copied; only names of samples travel") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);  // the last batch has 2 samples, so ranks stay empty
  for (const auto way : ways) {
    const Devices devices(everybody(), way);
    for (const bool record : {true, false}) {
      DeviceRun copied(devices, mlp(), data, {.clip_norm = 1, .record = record});
      DeviceRun kept(devices, mlp(), data, {.clip_norm = 1, .record = record, .keep_data = true});
      REQUIRE(kept.strategy.keeps(data));
      CHECK_FALSE(copied.strategy.keeps(data));
      CHECK(kept.strategy.memory().data == DeviceDataset::bytes_of(data));
      CHECK(kept.strategy.memory().text().find(", data ") != std::string::npos);
      for (int round = 0; round < 2; ++round) {
        for (int k = 0; k < 5; ++k) CHECK(same(kept.step(), copied.step()));
        const Evaluation a = copied.strategy.evaluate(copied.loader), b = kept.strategy.evaluate(kept.loader);
        CHECK(b.loss == a.loss);
        CHECK(b.metric == a.metric);
      }
      CHECK(kept.parameters() == copied.parameters());
    }
  }
}

TEST_CASE("a step on kept data copies names and sums alone, call by call as in a replay, by hand as by train_step") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);
  const Devices devices(alone(), AllreduceAlgorithm::staged);
  DeviceRun whole(devices, mlp(), data, {.record = false, .keep_data = true});
  DeviceRun parts(devices, mlp(), data, {.keep_data = true});
  for (int k = 0; k < 3; ++k) {
    const std::size_t before = devices.device->bytes_copied;
    const StepResult a = whole.step();
    CHECK(devices.device->bytes_copied - before < 101 * sizeof(std::uint64_t) + 512);  // an image has 252 bytes
    const Batch& batch = parts.strategy.place(parts.loader.next());
    const Pass pass = parts.strategy.begin_pass(batch);
    parts.strategy.forward(batch, pass);
    parts.strategy.loss(batch, pass);
    parts.strategy.backward(pass);
    CHECK(same(parts.strategy.apply(parts.strategy.reduce(pass), pass), a));
  }
}

TEST_CASE("steps begun before the last ones were looked at have the bits of steps one by one") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);  // the last batch has 2 samples, so ranks stay empty
  for (const auto way : ways) {
    const Devices devices(everybody(), way);
    for (const std::size_t in_flight : {2, 4}) {
      if (sanitized && in_flight == 2) continue;  // four go through all that two do
      for (const auto& [keep_data, ahead] : {std::pair(true, false), std::pair(false, true), std::pair(false, false)}) {
        DeviceRun one_by_one(devices, mlp(), data, {.clip_norm = 1});
        DeviceRun many(devices, mlp(), data,
                       {.clip_norm = 1, .keep_data = keep_data, .in_flight = in_flight, .ahead = ahead});
        for (int round = 0; round < 2; ++round) {
          for (const StepResult& found : many.steps_ahead(11)) CHECK(same(found, one_by_one.step()));
          const Evaluation a = one_by_one.strategy.evaluate(one_by_one.loader), b = many.strategy.evaluate(many.loader);
          CHECK(b.loss == a.loss);
        }
        CHECK(many.parameters() == one_by_one.parameters());
        CHECK(many.strategy.updates() == one_by_one.strategy.updates());
      }
    }
  }
}

TEST_CASE("the host waits for nothing in a step, be its device as late as it likes") {
  const MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  const Devices devices(everybody(), AllreduceAlgorithm::nccl);
  for (const bool keep_data : {true, false}) {
    DeviceRun run(devices, mlp(), data,
                  {.global_batch = 30, .keep_data = keep_data, .in_flight = 4, .ahead = !keep_data});
    run.steps_ahead(9);
    const int before = run.stream().host_waits();
    run.stream().hang(true);
    const Batch* last = nullptr;
    for (int k = 0; k < 4; ++k) {
      last = &run.loader.next();
      run.strategy.begin_step(*last);  // would never return if it waited
    }
    CHECK(run.stream().host_waits() == before);
    // Not on a fifth of the loader's: it keeps four, and would fill the first's place.
    CHECK_THROWS_AS(run.strategy.begin_step(*last), LogicError);
    run.stream().hang(false);
    for (int k = 0; k < 4; ++k) CHECK_FALSE(run.strategy.finish_step().nonfinite);
    CHECK(run.stream().host_waits() == before + 4);
    CHECK_THROWS_AS(run.strategy.finish_step(), LogicError);
  }
}

TEST_CASE("a step that is not finite stays without effect when others were begun after it") {
  const MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  for (const auto way : ways) {
    const Devices devices(everybody(), way);
    DeviceRun run(devices, mlp(), data, {.global_batch = 30, .in_flight = 3});
    DeviceRun one_by_one(devices, mlp(), data, {.global_batch = 30});
    const auto begin = [](DeviceRun& training, bool spoilt) {
      const Batch& batch = training.loader.next();
      if (spoilt) batch.target().pointer<std::int32_t>()[0] = 4;  // no such class
      training.strategy.begin_step(batch);
    };
    for (int k = 0; k < 3; ++k) begin(run, k == 1);
    for (int k = 0; k < 3; ++k) {
      const StepResult found = run.strategy.finish_step();
      CHECK(found.nonfinite == (k == 1));
      begin(one_by_one, k == 1);
      const StepResult expected = one_by_one.strategy.finish_step();
      if (k != 1) CHECK(same(found, expected));  // otherwise the loss is no number, which equals none
    }
    CHECK(run.strategy.updates() == 2);
    CHECK(run.parameters() == one_by_one.parameters());
  }
}

TEST_CASE("with steps in flight a strategy does nothing that would have to know their results") {
  const MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  const Devices devices(alone(), AllreduceAlgorithm::staged);
  DeviceRun run(devices, mlp(), data, {.global_batch = 30, .in_flight = 2});
  run.strategy.begin_step(run.loader.next());
  CHECK_THROWS_AS(run.step(), LogicError);
  CHECK_THROWS_AS(run.strategy.state().set_updates(3), LogicError);
  CHECK_FALSE(run.strategy.finish_step().nonfinite);
  run.strategy.begin_step(run.loader.next());  // and goes away without looking
  DeviceRun cpu(alone(), nullptr, mlp(), data, {.global_batch = 30});
  CHECK(cpu.strategy.max_in_flight() == 1);
  cpu.strategy.begin_step(cpu.loader.next());
  CHECK_THROWS_AS(cpu.strategy.begin_step(cpu.loader.next()), LogicError);
  CHECK_FALSE(cpu.strategy.finish_step().nonfinite);
  CHECK_THROWS_AS(cpu.strategy.finish_step(), LogicError);
}

TEST_CASE("batches of either kind may be mixed") {
  const MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  const Devices devices(alone(), AllreduceAlgorithm::staged);
  DeviceRun copied(devices, mlp(), data, {.global_batch = 30}),
      mixed(devices, mlp(), data, {.global_batch = 30, .keep_data = true});
  BatchLoader values(data, SampleOrder(data.size(), 1, true), mixed.plan);
  for (int k = 0; k < 8; ++k) {
    const Batch &by_value = values.next(), &by_name = mixed.loader.next();
    CHECK(same(mixed.strategy.train_step(k % 3 == 1 ? by_value : by_name), copied.step()));
  }
}

TEST_CASE("data stays on the host of all ranks where one rank's device has no room, or a limit leaves none") {
  const MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  const Devices devices(everybody(), AllreduceAlgorithm::staged);
  const std::size_t bytes = DeviceDataset::bytes_of(data);
  devices.device->free_memory = world().rank() + 1 == world().size() ? 2 * bytes - 2 : 2 * bytes;
  CHECK_FALSE(DeviceRun(devices, mlp(), data, {.keep_data = true}).strategy.keeps(data));
  devices.device->free_memory = 2 * bytes;
  DeviceRun kept(devices, mlp(), data, {.keep_data = true});
  CHECK(kept.strategy.keeps(data));
  const std::size_t whole = kept.strategy.memory().total();
  CHECK(DeviceRun(devices, mlp(), data, {.keep_data = true, .memory_limit = whole}).strategy.keeps(data));
  DeviceRun limited(devices, mlp(), data, {.keep_data = true, .memory_limit = whole - 1});
  CHECK_FALSE(limited.strategy.keeps(data));
  CHECK_THROWS_AS(limited.step(), LogicError);  // its batches have no values
}

TEST_CASE("ranks that share a device share its room") {
  const MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  Devices devices(everybody(), AllreduceAlgorithm::staged);
  const auto sharers = static_cast<std::size_t>(world().size());
  const auto shared = std::make_shared<FakeDevice>("GPU-0");
  Communicator ranks = everybody().split(0, world().rank());
  ranks.group().use_device(shared, AllreduceAlgorithm::staged, nullptr);
  const std::size_t bytes = DeviceDataset::bytes_of(data);
  for (const std::size_t free : {2 * bytes * sharers - 2 * sharers, 2 * bytes * sharers}) {
    shared->free_memory = free;
    Devices same_one(ranks, AllreduceAlgorithm::staged);
    same_one.device = shared;
    same_one.communicator = ranks;
    CHECK(DeviceRun(same_one, mlp(), data, {.keep_data = true}).strategy.keeps(data) == (free == 2 * bytes * sharers));
  }
}

TEST_CASE("the parts of a step on a device, called by hand, give the bits of train_step") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  for (const auto way : ways) {
    const Devices devices(everybody(), way);
    DeviceRun whole(devices, mlp(), data, {.global_batch = 32}), parts(devices, mlp(), data, {.global_batch = 32});
    for (int k = 0; k < 5; ++k) {
      const StepResult a = whole.step();
      const Batch& batch = parts.strategy.place(parts.loader.next());
      const Pass pass = parts.strategy.begin_pass(batch);
      parts.strategy.forward(batch, pass);
      parts.strategy.loss(batch, pass);
      parts.strategy.backward(pass);
      const StepControl& total = parts.strategy.reduce(pass);
      CHECK(total.weight == 32);
      CHECK(same(parts.strategy.apply(total, pass), a));
    }
    CHECK(parts.parameters() == whole.parameters());
  }
}

TEST_CASE("what is not finite on one device is not applied on any, and explained") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  for (const auto way : ways) {
    const Devices devices(everybody(), way);
    DeviceRun run(devices, mlp(), data, {.global_batch = 32, .check_gradients = true});
    for (int k = 0; k < 4; ++k) {  // also where the step is a replay
      const auto before = run.parameters();
      const Batch& batch = run.loader.next();
      if (world().rank() + 1 == world().size()) batch.target().pointer<std::int32_t>()[0] = 4;  // no such class
      const StepResult result = run.strategy.train_step(batch);
      CHECK(result.nonfinite);
      CHECK(run.parameters() == before);
      const std::string why = run.strategy.explain_nonfinite(batch);
      CHECK(why.starts_with("on rank " + std::to_string(world().size() - 1) + " on "));
      CHECK(why.find("the loss") != std::string::npos);
    }
    CHECK(run.strategy.updates() == 0);
    CHECK_FALSE(run.step().nonfinite);
    CHECK(run.strategy.updates() == 1);
  }
}

TEST_CASE("a rank's wish to stop reaches all devices' ranks in the same step") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  for (const auto way : ways) {
    const Devices devices(everybody(), way);
    DeviceRun run(devices, mlp(), data, {.global_batch = 32});
    for (int k = 0; k < 4; ++k) CHECK_FALSE(run.step().stop);
    if (world().rank() == world().size() - 1) run.strategy.request_stop();
    CHECK(run.step().stop);
  }
}

TEST_CASE("a broadcast makes the devices' parameters the first rank's") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  for (const auto way : ways) {
    const Devices devices(everybody(), way);
    DeviceRun run(devices, mlp(), data, {.global_batch = 32});
    const auto first = run.parameters();
    for (const auto& p : run.strategy.parameters())
      std::ranges::fill(std::span(p.value.pointer<float>(), 4), static_cast<float>(world().rank()));
    const auto changed = run.parameters();
    if (world().size() > 1) CHECK_THROWS_AS(run.strategy.parameter_hash(), Error);
    run.strategy.broadcast_parameters();
    CHECK_FALSE(run.strategy.parameter_hash().empty());
    if (world().rank() == 0) CHECK(run.parameters() == changed);
    CHECK(run.parameters() != first);
  }
}

TEST_CASE("where the ranks' devices are is told, and a communicator that knows of none is told of them") {
  struct Lines final : EventSink {
    void on_detail(std::string_view line) override { all.emplace_back(line); }
    std::vector<std::string> all;
  } lines;
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  const auto device = std::make_shared<FakeDevice>("GPU-" + std::to_string(world().rank()));
  Sequential model = mlp();
  SoftmaxCrossEntropy loss;
  const BatchPlan plan(data.size(), 32, shard_of(everybody()), 1);
  MirroredOptions options = MirroredOptions::for_data(data, plan);
  options.platform.device = ComputeDevice::on(device);
  options.platform.primitives = make_fake_primitives();
  options.platform.make_updater = make_fake_updater;
  options.fusion.algorithm = AllreduceAlgorithm::staged;
  Communicator communicator = everybody().split(0, world().rank());
  const MirroredStrategy strategy(communicator, model, loss, make_optimizer({}), Schedule({.learning_rate = 0.1}),
                                  options, &lines);
  CHECK(communicator.devices().size() == static_cast<std::size_t>(world().size()));
  for (const auto& line : communicator.devices()) CHECK(std::ranges::find(lines.all, line) != lines.all.end());
  CHECK(lines.all[0] != "");
}

TEST_CASE("one device adds up micro-batches to the processor's bits, whatever is in flight") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);
  const Devices devices(alone(), AllreduceAlgorithm::staged);
  for (const std::size_t micro_batches : {2, 3})
    for (const bool keep_data : {false, true})
      for (const std::size_t in_flight : {1, 2}) {
        const DeviceSet set{.keep_data = keep_data,
                            .in_flight = in_flight,
                            .ahead = !keep_data && in_flight > 1,
                            .micro_batches = micro_batches};
        DeviceRun cpu(alone(), nullptr, mlp(), data, {.micro_batches = micro_batches});
        DeviceRun gpu(devices, mlp(), data, set);
        for (const StepResult& result : gpu.steps_ahead(9)) CHECK(same(result, cpu.step()));
        CHECK(gpu.parameters() == cpu.parameters());
        CHECK(gpu.strategy.updates() == 9);
      }
}

TEST_CASE("micro-batches on any number of devices train what whole batches do, reduced once a step") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);  // the last batch has 2 samples, so ranks stay empty
  for (const auto way : ways) {
    const Devices devices(everybody(), way);
    DeviceRun whole(devices, mlp(), data, {}), parts(devices, mlp(), data, {.micro_batches = 3});
    const DeviceSet by_call{.record = false, .micro_batches = 3};
    DeviceRun eager(devices, mlp(), data, by_call);
    for (std::size_t k = 0; k < 2 * whole.plan.steps_per_epoch(); ++k) {
      const StepResult a = whole.step(), b = parts.step();
      CHECK(b.weight == a.weight);
      CHECK(b.loss == Approx(a.loss).epsilon(1e-4));
      CHECK(same(eager.step(), b));
    }
    CHECK(eager.parameters() == parts.parameters());
    CHECK(relative_distance(parts.parameters(), whole.parameters()) < 1e-4);  // sums in another order
    CHECK_FALSE(parts.strategy.parameter_hash().empty());                     // throws where replicas differ
  }
}

TEST_CASE("a step of several micro-batches waits once, is recorded by them, and ends by hand as well") {
  const MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  const Devices devices(everybody(), AllreduceAlgorithm::nccl);
  const DeviceSet set{.global_batch = 30, .keep_data = true, .micro_batches = 2};
  DeviceRun run(devices, mlp(), data, set), parts(devices, mlp(), data, set);
  run.steps(2);
  parts.steps(2);
  const int recordings = devices.device->recordings, before = run.stream().host_waits();
  CHECK(recordings == 4);  // two steps of two
  run.steps(4);
  CHECK(devices.device->recordings == recordings);
  CHECK(run.stream().host_waits() == before + 4);
  for (int k = 0; k < 4; ++k) {
    const Batch& batch = parts.strategy.place(parts.last_batch());
    const Pass pass = parts.strategy.begin_pass(batch);
    parts.strategy.forward(batch, pass);
    parts.strategy.loss(batch, pass);
    parts.strategy.backward(pass);
    const StepControl& total = parts.strategy.reduce(pass);
    CHECK(total.weight == 30);
    static_cast<void>(parts.strategy.apply(total, pass));
  }
  CHECK(parts.parameters() == run.parameters());
  CHECK_THROWS_AS(run.strategy.train_step(run.loader.next()), LogicError);  // the first of two
  run.strategy.accumulate(run.loader.next());
  CHECK_THROWS_AS(run.strategy.accumulate(run.loader.next()), LogicError);  // the last of two
}

TEST_CASE("what devices do not do yet is refused on all ranks together") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  const Devices devices(everybody(), AllreduceAlgorithm::staged);
  Sequential model = mlp();
  SoftmaxCrossEntropy loss;
  const BatchPlan plan(data.size(), 32, shard_of(everybody()), 1);
  MirroredOptions options = MirroredOptions::for_data(data, plan);
  options.platform.device = ComputeDevice::on(devices.device);
  options.platform.primitives = make_fake_primitives();
  options.platform.make_updater = make_fake_updater;
  const auto make = [&] {
    MirroredStrategy(devices.communicator, model, loss, make_optimizer({}), Schedule({.learning_rate = 0.1}), options);
  };
  options.fusion.algorithm = AllreduceAlgorithm::ring;
  CHECK_THROWS_AS(make(), InputError);
  options.fusion.algorithm = AllreduceAlgorithm::staged;
  CHECK_NOTHROW(make());
  model.add(SyncBatchNorm());  // which would ask other ranks from within a device's work
  require_mentions(message_of<InputError>(make), {"batch_norm1", ".device = cpu"});
}

}  // namespace device_test
