// Trainings whose optimizer is divided over the ranks: the same bits as mirrored ones, also from each other's
// checkpoints and by fewer ranks.
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>
#include <ronda/runtime/strategy/step/strategy_plan.hpp>
#include <ronda/runtime/trainer/plan_difference.hpp>
#include <ronda/runtime/trainer/trainer.hpp>

#include "support/message.hpp"
#include "support/toy_data.hpp"
#include "trainer/saved_training.hpp"
#include "trainer/small_training.hpp"

using namespace ronda;
using namespace ronda::test;

namespace sharded_training_test {
namespace {

constexpr const char* both[] = {"mirrored", "sharded"};
constexpr AllreduceAlgorithm exchanges[] = {AllreduceAlgorithm::automatic, AllreduceAlgorithm::ring};

Sequential model_of_layers() { return Sequential(Conv2d(8, 3), ReLU(), Flatten(), Dense(33), ReLU(), Dense(4)); }

struct Training : SmallTraining {
  explicit Training(TrainingOptions options) : SmallTraining(std::move(options), model_of_layers()) {}
};

constexpr auto trained = fitted_training<Training>;

TrainingOptions by(const std::string& strategy, AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic) {
  TrainingOptions options;
  options.strategy = strategy;
  options.allreduce = algorithm;
  options.optimizer.name = "adam";
  return options;
}

TrainingOptions with_one_copy() {
  TrainingOptions options = by("sharded");
  options.strategy = Sharded{.one_copy = true};
  return options;
}

TrainingOptions with_sharded_gradients(AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic) {
  TrainingOptions options = by("sharded", algorithm);
  options.strategy = Sharded{.shard_gradients = true};
  return options;
}

bool has_one_copy(const TrainingOptions& options) {
  const auto* sharded = options.strategy.as<Sharded>();
  return sharded != nullptr && sharded->one_copy;
}
bool shards_gradients(const TrainingOptions& options) {
  const auto* sharded = options.strategy.as<Sharded>();
  return sharded != nullptr && sharded->shard_gradients;
}

/// Trains with copies of each rank's own, and with one a node; each in a folder of its own.
void check_one_copy(const std::function<void(TrainingOptions&)>& change) {
  std::string hashes[2];
  for (int i = 0; i < 2; ++i) {
    const SharedFolder folder;
    TrainingOptions options = i == 0 ? by("mirrored") : with_one_copy();
    options.checkpoint_dir = folder.path;
    change(options);
    hashes[i] = trained(options)->hash();
  }
  CHECK(hashes[0] == hashes[1]);
}

}  // namespace

TEST_CASE("a checkpoint of either strategy is gone on from by the other, exactly") {
  for (const AllreduceAlgorithm algorithm : exchanges) {
    const std::string whole = trained(by("mirrored", algorithm))->hash();
    CHECK(trained(by("sharded", algorithm))->hash() == whole);
    for (const char* saves : both)
      for (const char* resumes : both) {
        INFO(saves << ", then " << resumes << " by " << name_of(algorithm));
        const SharedFolder folder;
        TrainingOptions options = by(saves, algorithm);
        options.checkpoint_dir = folder.path;
        run_until(5, options, trained);
        options.strategy = resumes;
        options.resume = options.exact = true;
        CHECK(trained(options)->hash() == whole);
      }
  }
}

TEST_CASE("a plan's file of either strategy is taken by the other") {
  for (const char* plans : both) {
    const SharedFolder folder;
    TrainingOptions options = by(plans);
    options.plan = folder.path / "plan.json";
    const std::string hash = trained(options)->hash();
    for (const char* takes : both) {
      options.strategy = takes;
      CHECK(trained(options)->hash() == hash);
    }
  }
}

TEST_CASE("plans differ in the first line on which bits depend") {
  const std::string by_parts(update_by_parts_line);
  CHECK_FALSE(difference_of_plans({"ring", by_parts, "halving"}, {"ring", "halving"}));
  CHECK(difference_of_plans({"ring", by_parts}, {"ring", "halving"}) ==
        std::pair<std::string, std::string>("nothing", "halving"));
  CHECK(difference_of_plans({"ring"}, {by_parts, "mpi"}) == std::pair<std::string, std::string>("ring", "mpi"));
}

TEST_CASE("on fewer ranks both strategies go on with the same states") {
  const SharedFolder folder;
  TrainingOptions saving = by("sharded");
  saving.checkpoint_dir = folder.path;
  run_until(5, saving, trained);
  const SavedStates saved(checkpoint_path(folder.path, 5));
  const bool left_out = world().size() > 1 && world().rank() == 0;
  const Communicator some = world().communicator().split(left_out ? 1 : 0, world().rank());
  const MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  const Sequential model = model_of_layers();
  SoftmaxCrossEntropy loss;
  const BatchPlan plan(data.size(), 25, shard_of(some));
  const auto gone_on = [&](bool divide) {
    MirroredOptions options = MirroredOptions::for_data(data, plan);
    if (divide) options.strategy = Sharded();
    options.platform.primitives = make_reference_primitives();
    MirroredStrategy strategy(some, model, loss, make_optimizer({.name = "adam"}), Schedule({.learning_rate = 0.05}),
                              options);
    static_cast<void>(saved.restore_into(strategy, some));
    BatchLoader loader(data, SampleOrder(data.size(), 1, true), plan);
    for (int k = 0; k < 4; ++k) strategy.train_step(loader.next());
    return strategy.parameter_hash();
  };
  CHECK(gone_on(true) == gone_on(false));
}

TEST_CASE("going back to a checkpoint works on divided states, too") {
  for (const AllreduceAlgorithm algorithm : exchanges) {
    std::string hashes[2];
    for (int i = 0; i < 2; ++i) {
      const SharedFolder folder;
      TrainingOptions options = by(both[i], algorithm);
      options.checkpoint_dir = folder.path;
      options.checkpoint_every.steps = 4;
      options.on_nonfinite = OnNonfinite::rollback;
      options.faults = {parse_fault("nan@7:0")};
      hashes[i] = trained(options)->hash();
    }
    CHECK(hashes[0] == hashes[1]);
  }
}

TEST_CASE("a checkpoint with one copy of the parameters is gone on from without, and one without with one copy") {
  const TrainingOptions kinds[] = {by("mirrored"), by("sharded"), with_one_copy()};
  const auto averaged = [](TrainingOptions options) {
    options.ema_decay = 0.8;
    return options;
  };
  const std::string whole = trained(averaged(kinds[0]))->hash();
  for (const TrainingOptions& saves : kinds)
    for (const TrainingOptions& resumes : kinds) {
      if (!has_one_copy(saves) && !has_one_copy(resumes)) continue;
      INFO(saves.strategy.name() << has_one_copy(saves) << ", then " << resumes.strategy.name()
                                 << has_one_copy(resumes));
      const SharedFolder folder;
      TrainingOptions options = averaged(saves);
      options.checkpoint_dir = folder.path;
      run_until(5, options, trained);
      options.strategy = resumes.strategy;
      options.resume = options.exact = true;
      CHECK(trained(options)->hash() == whole);
    }
}

TEST_CASE("with one copy a training goes back, skips, prunes, averages and keeps its best epoch as with a copy each") {
  check_one_copy([](TrainingOptions& options) {
    options.checkpoint_every.steps = 4;
    options.on_nonfinite = OnNonfinite::rollback;
    options.faults = {parse_fault("nan@7:0")};
  });
  check_one_copy([](TrainingOptions& options) {
    options.on_nonfinite = OnNonfinite::skip;
    options.faults = {parse_fault("nan@7:0")};
    options.accumulate = 2;
    options.clip_norm = 0.5;
  });
  check_one_copy([](TrainingOptions& options) {
    options.prune = 0.5;
    options.ema_decay = 0.9;
  });
  check_one_copy([](TrainingOptions& options) {
    options.keep_best = true;
    options.learning_rate = 0.5;  // so that a later epoch is worse
    options.ema_decay = 0.5;
  });
}

TEST_CASE("two fits in turn, and two trainings at once, with one copy") {
  TrainingOptions mirrored = by("mirrored"), shared = with_one_copy();
  Training a(mirrored), b(shared), c(shared);
  for (int i = 0; i < 2; ++i)
    for (Training* training : {&a, &b, &c}) training->fit();
  CHECK(b.hash() == a.hash());
  CHECK(c.hash() == a.hash());
}

TEST_CASE("with one copy gradients are compressed as with a copy each") {
  for (const Compression compression : {Compression::bf16, Compression::int8})
    check_one_copy([&](TrainingOptions& options) { options.compression = compression; });
}

TEST_CASE("a training that keeps a part of the gradients has the bits of one that was saved and went on") {
  for (const AllreduceAlgorithm algorithm : exchanges) {
    const TrainingOptions kinds[] = {by("mirrored", algorithm), by("sharded", algorithm),
                                     with_sharded_gradients(algorithm)};
    const std::string whole = trained(kinds[2])->hash();
    const bool on_node = world().communicator().topology().nodes == 1 && algorithm == AllreduceAlgorithm::automatic;
    if (on_node || world().size() <= 2) CHECK(trained(kinds[0])->hash() == whole);
    for (const TrainingOptions& saves : kinds)
      for (const TrainingOptions& resumes : kinds) {
        if (!shards_gradients(saves) && !shards_gradients(resumes)) continue;
        const bool same = shards_gradients(saves) == shards_gradients(resumes);
        INFO(saves.strategy.name() << ", then " << resumes.strategy.name());
        const SharedFolder folder;
        TrainingOptions options = saves;
        options.checkpoint_dir = folder.path;
        run_until(5, options, trained);
        options.strategy = resumes.strategy;
        options.resume = true;
        options.exact = same;
        const std::string hash = trained(options)->hash();
        if (same || on_node || world().size() <= 2) CHECK(hash == whole);
      }
  }
}

TEST_CASE("with a part of the gradients a training goes back, skips, accumulates and clips") {
  const auto distance = [](const std::function<void(TrainingOptions&)>& change) {
    std::vector<float> values[2];
    for (int i = 0; i < 2; ++i) {
      const SharedFolder folder;
      TrainingOptions options = i == 0 ? by("mirrored") : with_sharded_gradients();
      options.optimizer.name = "momentum";  // Adam makes whole steps of rounding errors
      options.checkpoint_dir = folder.path;
      change(options);
      const auto training = trained(options);
      for (const auto& parameter : training->trainer.strategy().parameters())
        for (const float value : to_file(parameter, parameter.value)) values[i].push_back(value);
    }
    return relative_distance(values[1], values[0]);
  };
  CHECK(distance([](TrainingOptions& options) {
          options.checkpoint_every.steps = 4;
          options.on_nonfinite = OnNonfinite::rollback;
          options.faults = {parse_fault("nan@7:0")};
        }) < 1e-5);
  CHECK(distance([](TrainingOptions& options) {
          options.on_nonfinite = OnNonfinite::skip;
          options.faults = {parse_fault("nan@7:0")};
          options.accumulate = 2;
          options.clip_norm = 0.5;
        }) < 1e-5);
}

TEST_CASE("a part of the gradients is for equal shares") {
  TrainingOptions uneven = with_sharded_gradients();
  uneven.shares = "measured";
  uneven.accumulate = 4;
  require_mentions(message_of<InputError>([&] { trained(uneven); }), {".shard_gradients", ".shares = equal"});
}

TEST_CASE("another checkpoint than the optimizer's is said by name") {
  const SharedFolder folder;
  TrainingOptions options = by("sharded");
  options.optimizer.name = "momentum";
  options.checkpoint_dir = folder.path;
  run_until(2, options, trained);
  options.optimizer.name = "adam";
  options.resume = true;
  options.allow_changes = {"optimizer", "momentum", "beta1", "beta2", "epsilon", "learning-rate"};
  CHECK_FALSE(trained(options)->hash().empty());  // goes on without the states, with a note
}

TEST_CASE("audits are for mirrored replicas, and there is no other strategy") {
  TrainingOptions audited = by("sharded");
  audited.audit_every = 2;
  require_mentions(message_of<InputError>([&] { trained(audited); }),
                   {".audit_every", ".strategy = sharded", ".strategy = mirrored"});
  require_mentions(message_of<InputError>([] { trained(by("shared")); }),
                   {"'shared'", ".strategy", "is mirrored, sharded, ", "did you mean sharded?"});
}

}  // namespace sharded_training_test
