// Whole trainings on devices that are threads: saved, ended and gone on with, by the loop that applications use.
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/fake_training.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"
#include "trainer/saved_training.hpp"

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/trainer/trainer.hpp>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

using namespace ronda;
using namespace ronda::test;

namespace device_training_test {
namespace {

/// Where a training's ranks compute: on their processors, or on a device each, connected so.
using Way = std::optional<AllreduceAlgorithm>;
constexpr AllreduceAlgorithm ways[] = {AllreduceAlgorithm::staged, AllreduceAlgorithm::nccl};

/// Devices that are threads, as a row of the table of platforms.
PlatformRow stand_in(const Devices& devices) {
  return {.kind = DeviceKind::cuda,
          .name = "stand-in",
          .survey = [] { return DeviceSurvey{.devices = 1}; },
          .context = [device = devices.device](int, int) { return device; },
          .primitives = [](const ComputeDevice&,
                           const PrimitivesRequest& request) { return make_fake_primitives(request.dtype); },
          .make_updater = make_fake_updater,
          .gather = fake_gather};
}

/// A small training by plain loops.
struct Training {
  Training(const Way& way, TrainingOptions options, EventSink* sink = nullptr, DType dtype = DType::float32)
      : trainer(world(), model, loss, small(std::move(options)), sink) {
    if (way) devices.emplace(*way, world().communicator());
    if (way)
      trainer.set_platform(stand_in(*devices).make(0, {.dtype = dtype}));
    else
      trainer.set_platform({ComputeDevice::processor(), make_reference_primitives()});
  }

  std::string hash() { return trainer.strategy().parameter_hash(); }
  /// The memory of these devices can be looked at, once they are done.
  std::vector<float> parameters() {
    std::vector<float> all;
    for (const auto& p : trainer.strategy().parameters()) {
      const auto values = to_file(p, Tensor(p.trained().desc(), p.trained().data()));
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  MemoryDataset data = toy_images(90, {9, 7, 1}, 4);  // the last batch of an epoch is short
  std::optional<Devices> devices;                     // before what uses them
  Sequential model{Flatten(), Dense(33), ReLU(), Dense(4)};
  SoftmaxCrossEntropy loss;
  Trainer trainer;
};

/// Has trained.
std::unique_ptr<Training> trained(const Way& way, TrainingOptions options, DType dtype = DType::float32) {
  auto training = std::make_unique<Training>(way, std::move(options), nullptr, dtype);
  training->trainer.fit(training->data, training->data);
  return training;
}
auto training_on(const Way& way, DType dtype = DType::float32) {
  return [way, dtype](TrainingOptions options) { return trained(way, std::move(options), dtype); };
}

}  // namespace

TEST_CASE("a training on devices that was ended and saved goes on to the bits of one that was not") {
  for (const auto way : ways)
    for (const char* optimizer : {"nesterov", "adamw"}) {
      const SharedFolder folder;
      TrainingOptions options;
      options.optimizer.name = optimizer;
      options.clip_norm = 1;
      const auto whole = trained(way, options);
      TrainingOptions saved = saving_in(folder, 3);
      saved.optimizer.name = optimizer;
      saved.clip_norm = 1;
      run_until(steps_per_epoch + 1, saved, training_on(way));
      saved.resume = saved.exact = true;
      run_until(5, saved, training_on(way));  // of those that are left
      const auto rest = trained(way, saved);
      CHECK_FALSE(rest->trainer.left());
      CHECK(rest->trainer.statistics().steps() == 2);
      CHECK(rest->hash() == whole->hash());
      CHECK(rest->trainer.strategy().updates() == steps);
    }
}

TEST_CASE("a training on devices by micro-batches goes on to the same bits, saved or repaired") {
  for (const auto way : ways) {
    const SharedFolder folder;
    TrainingOptions options;
    options.accumulate = 3;
    const auto whole = trained(way, options);
    TrainingOptions saved = saving_in(folder);
    saved.accumulate = 3;
    run_until(5, saved, training_on(way));
    saved.resume = saved.exact = true;
    CHECK(trained(way, saved)->hash() == whole->hash());
    if (world().size() == 1) continue;
    options.audit_every = 3;
    options.on_divergence = OnDivergence::rollback;
    options.faults = {parse_fault("flip@6:1")};
    CHECK(trained(way, options)->hash() == whole->hash());
  }
}

TEST_CASE("a training in a half type goes on to the bits as well: float32 parameters, and float16's loss scale") {
  struct States final : StateVisitor {
    void visit(const State& state) override {
      if (state.name.starts_with("loss_scale")) scale.push_back(*state.tensor.pointer<float>());
    }
    std::vector<float> scale;
  };
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    const SharedFolder folder;
    const auto whole = trained(AllreduceAlgorithm::nccl, {}, dtype);
    TrainingOptions saved = saving_in(folder, 3);
    run_until(steps_per_epoch + 1, saved, training_on(AllreduceAlgorithm::nccl, dtype));
    saved.resume = saved.exact = true;
    const auto rest = trained(AllreduceAlgorithm::nccl, saved, dtype);
    CHECK(rest->trainer.statistics().steps() == steps - steps_per_epoch - 1);
    CHECK(rest->hash() == whole->hash());
    CHECK(rest->trainer.strategy().updates() == whole->trainer.strategy().updates());
    States mine, theirs;
    rest->trainer.strategy().visit(mine);
    whole->trainer.strategy().visit(theirs);
    CHECK(mine.scale == theirs.scale);
    CHECK(mine.scale.size() == (dtype == DType::float16 ? 2 : 0));
    if (dtype == DType::float16) CHECK(mine.scale[0] < 0x1p16F);  // it had to be found
  }
}

TEST_CASE("a checkpoint that devices wrote while they went on is of the step that it names") {
  for (const auto way : ways) {
    const SharedFolder folder;
    const auto whole = trained(way, saving_in(folder, 2));
    for (const auto& place : list_checkpoints(folder.path)) {
      TrainingOptions options;
      options.resume_from = place.path;
      options.exact = true;
      const auto rest = trained(way, options);
      CHECK(rest->trainer.statistics().steps() == steps - place.step);
      CHECK(rest->hash() == whole->hash());
    }
  }
}

TEST_CASE("a checkpoint of processors goes on on devices, and the other way round") {
  for (const auto way : ways)
    for (const bool onto_devices : {true, false}) {
      const Way first = onto_devices ? Way() : Way(way), second = onto_devices ? Way(way) : Way();
      const SharedFolder folder;
      const auto whole = trained(first, {});
      run_until(5, saving_in(folder), training_on(first));
      TrainingOptions options = saving_in(folder);
      options.resume = true;
      const auto rest = trained(second, options);
      CHECK(rest->trainer.statistics().steps() == steps - 5);
      if (world().size() == 1)
        CHECK(rest->hash() == whole->hash());  // one rank's plain loops are the same on either
      else
        CHECK(relative_distance(rest->parameters(), whole->parameters()) < 1e-4);  // sums in another order
      options.exact = true;
      options.epochs = 4;
      CHECK_THROWS_AS(trained(first, options), InputError);  // made on the other kind
    }
}

TEST_CASE("a training that looks at its steps late tells each as one that looks at once, and ends with its bits") {
  struct Told final : EventSink {
    void on_step(const StepReport& report) override { steps.push_back(report); }
    void on_epoch(const EpochReport& report) override { epochs.push_back(report); }
    std::vector<StepReport> steps;
    std::vector<EpochReport> epochs;
  };
  for (const auto way : ways)
    for (const bool names : {true, false}) {
      const auto run = [&](std::size_t in_flight, Told& told) {
        TrainingOptions options;
        options.steps_in_flight = in_flight;
        options.clip_norm = 1;
        Training training(way, options, &told);
        if (!names) training.devices->device->free_memory = 0;  // so batches are copied
        const auto keeps = [&] { return training.trainer.strategy().keeps(training.data); };
        training.trainer.add(
            {.step = {}, .epoch = [&](const EpochReport&) { CHECK(keeps() == names); }, .evaluation = {}});
        training.trainer.fit(training.data, training.data);
        CHECK_FALSE(keeps());  // the data may go
        CHECK(training.trainer.statistics().steps() == steps);
        return training.hash();
      };
      Told at_once, late;
      CHECK(run(1, at_once) == run(4, late));
      REQUIRE(late.steps.size() == at_once.steps.size());
      for (std::size_t i = 0; i < late.steps.size(); ++i) {
        const StepReport &a = at_once.steps[i], &b = late.steps[i];
        CHECK(b.step == i + 1);
        CHECK(b.step_in_epoch == a.step_in_epoch);
        CHECK(b.epoch == a.epoch);
        CHECK(b.loss == a.loss);
        CHECK(b.metric == a.metric);
        CHECK(b.learning_rate == a.learning_rate);
        CHECK(b.samples == a.samples);
      }
      REQUIRE(late.epochs.size() == at_once.epochs.size());
      for (std::size_t i = 0; i < late.epochs.size(); ++i) {
        CHECK(late.epochs[i].train_loss == at_once.epochs[i].train_loss);
        CHECK(late.epochs[i].train_metric == at_once.epochs[i].train_metric);
        CHECK(late.epochs[i].test_loss == at_once.epochs[i].test_loss);
        CHECK(late.epochs[i].samples == at_once.epochs[i].samples);
      }
    }
}

TEST_CASE("a wish to end is heard when the step is looked at, and what was begun meanwhile is saved with it") {
  for (const auto way : ways) {
    const SharedFolder folder;
    const auto whole = trained(way, {});
    TrainingOptions options = saving_in(folder);
    options.steps_in_flight = 3;
    const bool told = world().rank() + 1 == world().size();
    options.leave = [told, asked = 0]() mutable { return ++asked >= 6 && told; };  // once at the start
    const auto ended = trained(way, options);
    CHECK(ended->trainer.left());
    CHECK(ended->trainer.statistics().steps() == 5 + 2);
    options.leave = {};
    options.resume = options.exact = true;
    const auto rest = trained(way, options);
    CHECK(rest->trainer.statistics().steps() == steps - 7);
    CHECK(rest->hash() == whole->hash());
  }
}

TEST_CASE("a hook sees each step before the next begins") {
  Training training(AllreduceAlgorithm::staged, {});
  std::uint64_t seen = 0;
  training.trainer.add({.step =
                            [&](const StepReport& report) {
                              CHECK(report.step == ++seen);
                              CHECK(training.trainer.strategy().steps_in_flight() == 0);
                              CHECK(training.trainer.strategy().updates() == seen);
                              if (seen == 6) training.trainer.stop();
                            },
                        .epoch = {},
                        .evaluation = {},
                        .settles = true});
  training.trainer.fit(training.data, training.data);
  CHECK(seen == 7);
}

TEST_CASE("saving makes the host wait for a device no more often") {
  const auto waits = [](const TrainingOptions& options) {
    Training training(AllreduceAlgorithm::nccl, options);
    const ComputeDevice computing = ComputeDevice::on(training.devices->device);
    training.trainer.set_platform({computing, make_fake_primitives(), make_fake_updater, fake_gather});
    training.trainer.fit(training.data, training.data);
    return dynamic_cast<FakeStream&>(*computing.stream).host_waits();
  };
  const SharedFolder folder;
  CHECK(waits(saving_in(folder, 2)) == waits({}));
}

TEST_CASE("what is not finite on a device is skipped or rolled back on all, as on processors") {
  for (const auto choice : {OnNonfinite::skip, OnNonfinite::rollback})
    for (const auto way : ways) {
      const auto run = [&](const Way& where) {
        const SharedFolder folder;
        TrainingOptions options = saving_in(folder);
        run_until(6, options, training_on(where));  // what is gone back to
        options.resume = true;
        options.on_nonfinite = choice;
        options.faults = {parse_fault("nan@8:" + std::to_string(world().size() - 1))};
        const auto training = trained(where, options);
        CHECK(training->trainer.strategy().updates() == (choice == OnNonfinite::skip ? steps - 1 : steps - 2));
        CHECK_FALSE(training->hash().empty());  // throws where replicas differ
        return training->parameters();
      };
      CHECK(relative_distance(run(way), run({})) < 1e-4);
    }
}

TEST_CASE("a bit that flips on a device is found, the rank is named, and going back leaves the bits") {
  if (world().size() == 1) return;  // replicas that differ take two
  for (const auto way : ways) {
    const auto whole = trained(way, {});
    TrainingOptions options;
    options.faults = {parse_fault("flip@6:1")};
    CHECK_THROWS_AS(trained(way, options), Error);  // at its end, where hashes are compared
    options.audit_every = 3;
    const std::string found = message_of<Error>([&] { trained(way, options); });
    require_mentions(found, {"after step 6 (audited after step 3)", "rank 1 on", "erred, first in "});
    options.on_divergence = OnDivergence::rollback;
    const auto repaired = trained(way, options);
    CHECK(repaired->hash() == whole->hash());
    CHECK(repaired->trainer.strategy().updates() == steps);
  }
}

TEST_CASE("audits of devices that agree change nothing, and what is saved says that it was audited") {
  for (const auto way : ways) {
    const SharedFolder folder;
    const auto whole = trained(way, {});
    TrainingOptions options = saving_in(folder, 5);
    options.audit_every = 2;
    CHECK(trained(way, options)->hash() == whole->hash());
    for (const auto& place : list_checkpoints(folder.path)) CHECK(read_manifest(manifest_of(place.path)).audited);
  }
}

TEST_CASE("what devices do not do yet is refused") {
  const auto refuses = [](const TrainingOptions& options) {
    CHECK_THROWS_AS(trained(AllreduceAlgorithm::staged, options), InputError);
  };
  TrainingOptions options;
  options.faults = {parse_fault("flip-gradient@1")};
  refuses(options);
}

}  // namespace device_training_test
