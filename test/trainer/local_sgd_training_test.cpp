// Trainings whose ranks synchronise once in several steps: epochs, checkpoints, what goes wrong.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/snapshot.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>
#include <ronda/runtime/trainer/hook.hpp>
#include <ronda/runtime/trainer/trainer.hpp>
#include <ronda/runtime/trainer/training_run.hpp>

#include "support/message.hpp"
#include "support/toy_data.hpp"
#include "trainer/saved_training.hpp"
#include "trainer/small_training.hpp"

using namespace ronda;
using namespace ronda::test;

namespace local_sgd_training_test {
namespace {

Sequential model_with_norm() {
  return Sequential(Conv2d(8, 3), BatchNorm(), ReLU(), Flatten(), Dense(33), ReLU(), Dense(4));
}

struct LocalTraining {
  explicit LocalTraining(TrainingOptions options, std::uint64_t length = 3)
      : trainer(world(), model, loss, of_epochs(small(std::move(options)), length)) {
    trainer.set_platform({ComputeDevice::processor(), make_reference_primitives()});
    trainer.add({.step =
                     [this](const StepReport& report) {
                       const auto known = [](double number) { return std::isnan(number) ? -1 : number; };
                       told.push_back({known(report.loss), known(report.metric)});
                     },
                 .epoch = [this](const EpochReport& report) { epochs.push_back(report); }});
  }
  void fit() { result = trainer.fit(data, data); }
  std::string hash() { return trainer.strategy().parameter_hash(); }
  static TrainingOptions of_epochs(TrainingOptions options, std::uint64_t length) {
    options.epochs = length;
    return options;
  }

  MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  Sequential model = model_with_norm();
  SoftmaxCrossEntropy loss;
  Trainer trainer;
  Evaluation result;
  std::vector<EpochReport> epochs;
  std::vector<std::pair<double, double>> told;  ///< each step's loss and metric; -1: unknown
};

std::unique_ptr<LocalTraining> fitted(TrainingOptions options) {
  auto training = std::make_unique<LocalTraining>(std::move(options));
  training->fit();
  return training;
}

TrainingOptions local_options(OuterOptimizer outer = OuterOptimizer::nesterov, Compression compression = {}) {
  TrainingOptions options;
  options.strategy = LocalSgd{.synchronise_every = 3, .outer_optimizer = outer, .delta_compression = compression};
  options.optimizer.name = "adam";
  options.ema_decay = 0.9;
  return options;
}

/// The last rank's batches of these steps have a number that is none.
std::vector<Fault> spoiled_steps(std::uint64_t first, std::uint64_t last) {
  std::vector<Fault> faults;
  for (std::uint64_t step = first; step <= last; ++step) faults.push_back({FaultKind::nan, step, world().size() - 1});
  return faults;
}

/// What int8's rounding has lost: after the first checkpoint, and after the training went back to it.
struct Residuals final : Hook {
  void after_step(TrainingRun& run, const StepReport& report) override {
    if (report.step == run.options().checkpoint_every.steps) saved = now(run);
    if (run.states_were_set() > 0 && found.empty()) found = now(run);
  }
  static std::vector<float> now(TrainingRun& run) {
    struct Reader final : StateVisitor {
      void visit(const State& state) override {
        if (!state.name.ends_with(".residual")) return;
        const auto lost = state.tensor.as<float>();
        all.insert(all.end(), lost.begin(), lost.end());
      }
      std::vector<float> all;
    } reader;
    run.strategy().visit(reader);
    return reader.all;
  }
  std::vector<float> saved, found;
};

void save_at(const SharedFolder& folder, TrainingOptions options) {
  options.checkpoint_dir = folder.path;
  options.checkpoint_every.steps = 6;
  run_until(6, options, [](TrainingOptions first) { return fitted(std::move(first)); });
}

}  // namespace

TEST_CASE("epochs end with equal replicas, and tell the mean loss of all their samples") {
  TrainingOptions options = local_options();
  options.optimizer.name = "sgd";
  options.clip_value = 1e-9;  // parameters hardly move, so that all strategies see the same losses
  TrainingOptions mirrored = options;
  mirrored.strategy = "mirrored";
  const auto a = fitted(options), b = fitted(mirrored);
  REQUIRE(a->epochs.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(a->epochs[i].samples == 90);
    CHECK(a->epochs[i].train_loss == Approx(b->epochs[i].train_loss));
    CHECK(a->epochs[i].train_metric == Approx(b->epochs[i].train_metric));
    CHECK(a->epochs[i].test_loss == Approx(b->epochs[i].test_loss));
  }
  CHECK_FALSE(a->hash().empty());
}

TEST_CASE("frozen parameters keep their bits, as does their average") {
  TrainingOptions options = local_options();
  options.freeze = {"conv1"};
  TrainingOptions untouched = options;
  untouched.steps = 1;
  untouched.strategy = "mirrored";
  const auto bits_of = [](LocalTraining& training) {
    std::vector<float> bits;
    StateList states;
    training.trainer.strategy().visit(states);
    for (const State& state : states.states())
      if (state.name == "conv1.weight" || state.name == "conv1.weight.ema")
        for (const float number : state.tensor.as<float>()) bits.push_back(number);
    return bits;
  };
  const auto trained = fitted(options), first = fitted(untouched);
  CHECK(bits_of(*trained) == bits_of(*first));
  CHECK_FALSE(bits_of(*first).empty());
}

TEST_CASE("a training that was ended and goes on has the bits of one that was not") {
  for (const OuterOptimizer outer : {OuterOptimizer::average, OuterOptimizer::nesterov})
    for (const auto& [compression, fragments] : {std::pair(Compression::none, std::size_t{1}),
                                                 {Compression::int8, 1},
                                                 {Compression::int4, 1},
                                                 {Compression::int8, 3}}) {
      INFO(name_of(outer) << ", " << name_of(compression) << ", " << fragments << " fragments");
      TrainingOptions options = local_options(outer, compression);
      options.strategy.as<LocalSgd>()->fragments = fragments;
      options.allreduce = AllreduceAlgorithm::ring;
      options.checkpoint_every.steps = 6;
      const SharedFolder whole, parts;
      TrainingOptions uninterrupted = options;
      uninterrupted.checkpoint_dir = whole.path;
      const auto expected = fitted(uninterrupted);
      save_at(parts, options);
      options.checkpoint_dir = parts.path;
      options.resume = options.exact = true;
      const auto resumed = fitted(options);
      CHECK(resumed->hash() == expected->hash());
      CHECK(resumed->result.loss == expected->result.loss);
      CHECK(resumed->told == std::vector(expected->told.begin() + 6, expected->told.end()));
    }
}

TEST_CASE("checkpoints that come fast change the bits alike in every run") {
  std::string expected;
  for (int run = 0; run < 4; ++run) {
    TrainingOptions options = local_options();
    options.checkpoint_every.steps = 1;
    const SharedFolder folder;
    options.checkpoint_dir = folder.path;
    const auto hash = fitted(options)->hash();
    if (run == 0) expected = hash;
    CHECK(hash == expected);
  }
}

TEST_CASE("all strategies go on from its checkpoint, and it from theirs") {
  for (const char* saves : {"mirrored", "sharded", "local_sgd"})
    for (const char* resumes : {"mirrored", "sharded", "local_sgd"}) {
      INFO(saves << ", then " << resumes);
      const SharedFolder folder;
      const auto by = [](const std::string& strategy) {
        TrainingOptions options = local_options();
        if (strategy != "local_sgd") options.strategy = strategy;
        return options;
      };
      save_at(folder, by(saves));
      TrainingOptions options = by(resumes);
      options.checkpoint_dir = folder.path;
      options.resume = true;
      const auto training = fitted(options);
      CHECK(training->trainer.statistics().steps() == steps - 6);
      CHECK_FALSE(training->hash().empty());
    }
}

TEST_CASE("fewer ranks have its states to the bit") {
  const SharedFolder folder;
  save_at(folder, local_options());
  const SavedStates saved(checkpoint_path(folder.path, 6));
  const bool left_out = world().size() > 1 && world().rank() == 0;
  const MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  const Sequential model = model_with_norm();
  SoftmaxCrossEntropy loss;
  const auto momentum_on = [&](const Communicator& some) {
    const BatchPlan plan(data.size(), 25, shard_of(some));
    MirroredOptions options = MirroredOptions::for_data(data, plan);
    options.strategy = local_options().strategy;
    options.ema_decay = 0.9;
    options.platform.primitives = make_reference_primitives();
    MirroredStrategy strategy(some, model, loss, make_optimizer({.name = "adam"}), Schedule({.learning_rate = 0.05}),
                              options);
    const StateList states = saved.restore_into(strategy, some);
    std::vector<float> all;
    for (const State& state : states.states())
      if (state.name.ends_with(".outer_momentum")) {
        const auto numbers = to_file(state);
        all.insert(all.end(), numbers.begin(), numbers.end());
      }
    return std::pair(strategy.parameter_hash(), all);
  };
  const auto whole = momentum_on(world().communicator());
  CHECK(momentum_on(world().communicator().split(left_out ? 1 : 0, world().rank())) == whole);
  double sum = 0;
  for (const float each : whole.second) sum += std::abs(each);
  CHECK(sum > 0);
}

TEST_CASE("a rank's step that is not finite is skipped, or stops all ranks, or takes them back") {
  const std::string rank = std::to_string(world().size() - 1);
  for (const OnNonfinite choice : {OnNonfinite::skip, OnNonfinite::stop, OnNonfinite::rollback}) {
    const SharedFolder folder;
    TrainingOptions options = local_options();
    options.on_nonfinite = choice;
    options.checkpoint_dir = folder.path;
    options.checkpoint_every.steps = 6;
    options.faults = {parse_fault("nan@7:" + rank)};
    if (choice == OnNonfinite::stop) {
      require_mentions(message_of<Error>([&] { fitted(options); }), {"step 8", "on rank " + rank, "step 7"});
      continue;
    }
    const auto training = fitted(options);
    CHECK(training->trainer.statistics().steps() == steps);
    CHECK_FALSE(training->hash().empty());
  }
}

TEST_CASE("an epoch's mean loss leaves out the steps alone that were not finite") {
  TrainingOptions options = local_options();
  options.strategy.as<LocalSgd>()->synchronise_every = 100;
  options.on_nonfinite = OnNonfinite::skip;
  options.optimizer.name = "sgd";
  options.clip_value = 1e-9;  // parameters hardly move
  const auto whole = fitted(options);
  options.faults = spoiled_steps(7, 7);
  const auto part = fitted(options);
  CHECK(part->epochs[1].train_loss == Approx(whole->epochs[1].train_loss).epsilon(0.2));
  options.faults = spoiled_steps(5, 8);
  const auto others = fitted(options);
  CHECK((others->epochs[1].train_loss > 0) == (world().size() > 1));
}

TEST_CASE("synchronisations in a row that tell of steps that are not finite end a training") {
  TrainingOptions options = local_options();
  options.strategy.as<LocalSgd>()->synchronise_every = 2;
  options.on_nonfinite = OnNonfinite::skip;
  options.faults = spoiled_steps(1, 24);
  LocalTraining training(options, 6);
  require_mentions(message_of<Error>([&] { training.fit(); }), {"step 20", "10th step in a row"});
}

TEST_CASE("going back restores what int8 owes, also with a fragment under way") {
  const SharedFolder folder;
  TrainingOptions options = local_options(OuterOptimizer::average, Compression::int8);
  options.strategy.as<LocalSgd>()->fragments = 3;
  options.allreduce = AllreduceAlgorithm::ring;
  options.on_nonfinite = OnNonfinite::rollback;
  options.checkpoint_dir = folder.path;
  options.checkpoint_every.steps = 4;
  options.faults = spoiled_steps(5, 5);  // told after step 6, after which the next fragment starts
  LocalTraining training(options);
  Residuals residuals;
  training.trainer.add(residuals);
  training.fit();
  CHECK(residuals.found == residuals.saved);
  const bool owed = std::ranges::any_of(residuals.saved, [](float lost) { return lost != 0; });
  CHECK(owed == (world().size() > 1));
}

TEST_CASE("a step that does not synchronise has no loss, but the first of a training") {
  LocalTraining training(local_options());
  std::vector<StepReport> reports;
  training.trainer.add({.step = [&](const StepReport& report) { reports.push_back(report); }});
  training.fit();
  training.fit();
  REQUIRE(reports.size() == 2 * steps);
  CHECK(reports[steps - 1].loss > 0);
  CHECK(std::isnan(reports[steps].loss));
  CHECK(std::isnan(reports[steps].metric));
}

TEST_CASE("an option that would have no effect is refused") {
  TrainingOptions options = local_options();
  options.compression = Compression::int8;
  require_mentions(message_of<InputError>([&] { check(options); }),
                   {".compression", ".local_after", ".delta_compression"});
  options.strategy.as<LocalSgd>()->local_after = 4;
  check(options);
  options.accumulate = 4;
  options.shares = "measured";
  require_mentions(message_of<InputError>([&] { check(options); }), {".shares", "local_sgd", "equal"});
}

TEST_CASE("equal bits are not promised where the time decides when a checkpoint takes a mean") {
  TrainingOptions options = local_options();
  options.checkpoint_dir = "somewhere";
  options.exact = true;
  options.checkpoint_every.seconds = 1;
  require_mentions(message_of<InputError>([&] { check(options); }), {".exact", ".checkpoint_every", "steps"});
  options.checkpoint_every = {.steps = 10, .seconds = 0};
  check(options);
}

TEST_CASE("weights are pruned where replicas are averaged, and stay zero") {
  TrainingOptions options = local_options(OuterOptimizer::average);
  options.prune = 0.5;
  const auto training = fitted(options);
  const auto [weights, zeros] = training->trainer.strategy().state().zeros();
  CHECK(zeros >= weights / 2);
  options.strategy.as<LocalSgd>()->outer_optimizer = OuterOptimizer::nesterov;
  require_mentions(message_of<InputError>([&] { fitted(options); }), {".prune", "nesterov"});
}

TEST_CASE("a callback that settles steps sees equal replicas") {
  LocalTraining training(local_options());
  std::string hashes;
  training.trainer.add(
      {.step = [&](const StepReport&) { hashes = training.trainer.strategy().parameter_hash(); }, .settles = true});
  training.fit();
  CHECK_FALSE(hashes.empty());
}

TEST_CASE("audits find nothing between synchronisations, and are refused") {
  TrainingOptions options = local_options();
  options.audit_every = 2;
  require_mentions(message_of<InputError>([&] { fitted(options); }),
                   {".audit_every", ".strategy = local_sgd", ".strategy = mirrored"});
}

}  // namespace local_sgd_training_test
