// How a training ends: when it was asked to, with what results, and with nothing left of what it was given.
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

#include <ronda/collectives/group/group.hpp>
#include <ronda/collectives/phase.hpp>
#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/trainer/trainer.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/running_mean.hpp"
#include "support/toy_data.hpp"
#include "trainer/saved_training.hpp"

using namespace ronda;
using namespace ronda::test;

namespace fit_test {
namespace {

/// A small training of four steps an epoch, by plain loops, of a model with dropout, batch norms and a running mean.
struct Training {
  explicit Training(TrainingOptions options) : trainer(world(), model, loss, small(std::move(options))) {
    model.add(Flatten());
    model.add(Dense(7));
    model.add(SyncBatchNorm());
    model.add(Dropout(0.3));
    model.add(BatchNorm());
    model.add(RunningMean());
    model.add(Dense(4));
    trainer.set_platform({ComputeDevice::processor(), make_reference_primitives()});
  }
  std::string hash() { return trainer.strategy().parameter_hash(); }
  [[nodiscard]] std::vector<float> means() { return running_means(trainer.strategy()); }

  MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  Sequential model;
  SoftmaxCrossEntropy loss;
  Trainer trainer;
};

std::unique_ptr<Training> trained(TrainingOptions options) {
  auto training = std::make_unique<Training>(std::move(options));
  training->trainer.fit(training->data, training->data);
  return training;
}

/// Has no samples.
class Empty final : public Dataset {
 public:
  [[nodiscard]] std::size_t size() const override { return 0; }
  [[nodiscard]] std::span<const Field> fields() const override { return {}; }
  void read(const SampleRequest&, Batch&) const override {}
  [[nodiscard]] std::uint64_t fingerprint() const override { return 0; }
};

/// Is slow to read, and knows of datasets that are read though they are gone.
class Watched final : public Dataset {
 public:
  explicit Watched(const MemoryDataset& data) : data_(&data) {}
  ~Watched() override {
    if (reading > 0) ++read_when_gone;
  }
  [[nodiscard]] std::size_t size() const override { return data_->size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return data_->fields(); }
  void read(const SampleRequest& request, Batch& batch) const override {
    ++reading;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    data_->read(request, batch);
    --reading;
  }
  [[nodiscard]] std::uint64_t fingerprint() const override { return data_->fingerprint(); }

  static inline std::atomic<int> reading = 0, read_when_gone = 0;

 private:
  const MemoryDataset* data_;
};

/// Counts reads, by whether the rank has declared that it reads.
class Declared final : public Dataset {
 public:
  explicit Declared(const Dataset& data) : data_(data) {}
  [[nodiscard]] std::size_t size() const override { return data_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return data_.fields(); }
  [[nodiscard]] std::uint64_t fingerprint() const override { return data_.fingerprint(); }
  void read(const SampleRequest& request, Batch& batch) const override {
    const auto& recorder = world().communicator().group().members().ledger().recorder;
    if (request.epoch > 0 && recorder != nullptr) {
      const bool declared =
          Recorder::get(recorder->file().head.activity) == static_cast<std::uint64_t>(Activity::reading);
      ++(declared ? reads_declared : reads_undeclared);
    }
    data_.read(request, batch);
  }
  mutable std::atomic<int> reads_declared = 0, reads_undeclared = 0;

 private:
  const Dataset& data_;
};

}  // namespace

TEST_CASE("a training declares that it reads its samples, for which other ranks wait longer") {
  Training training({});
  const Declared data(training.data);
  training.trainer.fit(data, training.data);
  if (world().size() == 1) return;  // no watchdog
  CHECK(data.reads_declared > 0);
  CHECK(data.reads_undeclared == 0);
}

TEST_CASE("a validation split that differs between ranks is refused on all of them") {
  if (world().size() == 1) return;
  TrainingOptions options;
  options.validation_split = world().rank() == 1 ? 0.2 : 0;
  require_mentions(message_of<InputError>([&] { trained(options); }), {".validation_split", "'0.2", "'0.0"});
}

TEST_CASE("groups of parameters that differ between ranks are refused on all of them, before the first step") {
  if (world().size() == 1) return;
  TrainingOptions options;
  options.group_of = [](std::string_view name) {
    return ParameterGroup{.rate_factor = world().rank() == 1 && name == "dense1.bias" ? 0.5 : 1};
  };
  Training training(options);
  require_mentions(message_of<InputError>([&] { training.trainer.fit(training.data, training.data); }),
                   {".group_of", "dense1.bias: rate_factor 1", "dense1.bias: rate_factor 0.5"});
  CHECK(training.trainer.statistics().steps() == 0);
}

TEST_CASE("a stop asked for in an epoch's last hooks ends the training with that epoch, on all ranks") {
  for (const bool tested : {true, false})
    for (const bool by_strategy : {true, false})
      for (const std::string hook : {"epoch", "evaluation", "step"}) {
        if (hook == "evaluation" && !tested) continue;
        Training training({});
        std::vector<EpochReport> epochs;
        const auto ask = [&](std::uint64_t epoch) {
          if (epoch != 2 || world().rank() + 1 != world().size()) return;
          if (by_strategy)
            training.trainer.strategy().request_stop();
          else
            training.trainer.stop();
        };
        training.trainer.add({.step =
                                  [&](const StepReport& report) {
                                    if (hook == "step" && report.step == 2 * steps_per_epoch) ask(2);
                                  },
                              .epoch =
                                  [&](const EpochReport& report) {
                                    epochs.push_back(report);
                                    if (hook == "epoch") ask(report.epoch);
                                  },
                              .evaluation =
                                  [&](const Evaluation&) {
                                    if (hook == "evaluation") ask(epochs.size() + 1);
                                  }});
        const Empty nothing;
        const Evaluation result =
            training.trainer.fit(training.data, tested ? static_cast<const Dataset&>(training.data) : nothing);
        INFO(hook << (tested ? "" : ", not tested"));
        CHECK(training.trainer.statistics().steps() == 2 * steps_per_epoch);
        REQUIRE(epochs.size() == 2);
        CHECK(epochs[1].samples == 90);
        CHECK(result.loss == epochs[1].test_loss);
      }
}

TEST_CASE("what was stopped between epochs is saved, and goes on to the same bits") {
  const SharedFolder whole_folder;
  const auto whole = trained(saving_in(whole_folder));
  for (const std::uint64_t every : {0, 4}) {
    const SharedFolder folder;
    TrainingOptions options = saving_in(folder, every);
    options.audit_every = every;
    Training stopped(options);
    stopped.trainer.add({.step = {},
                         .epoch =
                             [&](const EpochReport& report) {
                               if (report.epoch == 1 && world().rank() == 0) stopped.trainer.stop();
                             },
                         .evaluation = {}});
    stopped.trainer.fit(stopped.data, stopped.data);
    CHECK(stopped.trainer.statistics().steps() == steps_per_epoch);
    CHECK_FALSE(stopped.trainer.left());
    options.resume = options.exact = true;
    const auto rest = trained(options);
    CHECK(rest->trainer.statistics().steps() == steps - steps_per_epoch);
    CHECK(rest->hash() == whole->hash());
    CHECK(rest->means() == whole->means());
  }
}

TEST_CASE("a stop asked for before there is a step ends the training after the first") {
  Training training({});
  if (world().rank() == 0) training.trainer.stop();
  training.trainer.fit(training.data, training.data);
  CHECK(training.trainer.statistics().steps() == 1);
}

TEST_CASE("nothing reads the data of a training that is over, or has failed") {
  for (const bool fails : {false, true}) {
    Training training({});
    if (fails)
      training.trainer.add(
          {.step = {}, .epoch = [](const EpochReport&) { throw std::runtime_error("enough"); }, .evaluation = {}});
    const auto fit = [&] { training.trainer.fit(Watched(training.data), Watched(training.data)); };
    if (fails)
      CHECK_THROWS_AS(fit(), std::runtime_error);
    else
      fit();
    CHECK(Watched::reading == 0);
    CHECK(Watched::read_when_gone == 0);
  }
}

TEST_CASE("what layers keep is saved rank by rank, and goes on to the same bits; audits do not mind that it differs") {
  const SharedFolder folder;
  TrainingOptions options;
  options.audit_every = 3;
  const auto whole = trained(options);
  TrainingOptions saved = saving_in(folder);
  saved.audit_every = 3;
  run_until(6, saved, [](TrainingOptions given) { return trained(std::move(given)); });
  saved.resume = saved.exact = true;
  const auto rest = trained(saved);
  CHECK(rest->hash() == whole->hash());
  CHECK(rest->means() == whole->means());
}

TEST_CASE("replicas that are repaired over an epoch's end keep what their layers do") {
  if (world().size() == 1) return;  // replicas that differ take two
  TrainingOptions options;
  options.audit_every = 3;
  options.on_divergence = OnDivergence::rollback;
  const auto whole = trained(options);
  options.faults = {parse_fault("flip@5:1")};
  const auto repaired = trained(options);
  CHECK(repaired->hash() == whole->hash());
  CHECK(repaired->means() == whole->means());
}

}  // namespace fit_test
