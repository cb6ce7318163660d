// Trainings by parameter servers: the results of mirrored ones, also from each other's checkpoints, on other numbers of
// ranks and servers, and all that a trainer does beside steps.
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/snapshot.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>
#include <ronda/runtime/trainer/trainer.hpp>

#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"
#include "trainer/saved_training.hpp"
#include "trainer/small_training.hpp"

using namespace ronda;
using namespace ronda::test;

namespace parameter_server_training_test {
namespace {

Sequential served_model() {
  return Sequential(Conv2d(8, 3), BatchNorm(), ReLU(), Flatten(), Dense(33), ReLU(), Dense(4));
}

struct ServedTraining : SmallTraining {
  explicit ServedTraining(TrainingOptions options) : SmallTraining(std::move(options), served_model()) {}
  void fit() { SmallTraining::fit(test); }

  MemoryDataset test = toy_images(37, {9, 7, 1}, 4, 2);
};

constexpr auto trained_by = fitted_training<ServedTraining>;

TrainingOptions mirrored_with_adam() {
  TrainingOptions options = with_servers(1);
  options.strategy = "mirrored";
  return options;
}

std::string text_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The parameters that a training has in the end, in file layout.
std::vector<float> parameters_of(ServedTraining& training) {
  std::vector<float> all;
  for (const Parameter& parameter : training.trainer.strategy().parameters()) {
    const auto values = to_file(parameter, parameter.trained());
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace

TEST_CASE("a training by servers goes on from its checkpoint with its own bits") {
  for (const int servers : server_counts())
    for (const int kind : {0, 1, 2}) {
      TrainingOptions options = with_servers(servers);
      options.ema_decay = kind == 1 ? 0.9 : 0;
      options.compression = kind == 0 ? Compression::none : Compression::int8;
      if (kind == 2)  // the ranks that write and read first are servers
        for (int rank = 0; rank < servers; ++rank) options.strategy.as<ParameterServer>()->server_ranks.push_back(rank);
      const std::string whole = trained_by(options)->hash();
      const SharedFolder folder;
      options.checkpoint_dir = folder.path;
      run_until(5, options, trained_by);
      options.resume = options.exact = true;
      CHECK(trained_by(options)->hash() == whole);
    }
}

TEST_CASE("mirrored replicas and servers go on from each other's checkpoints") {
  if (world().size() == 1) return;
  for (const int first : {0, 1, 2})
    for (const int then : {0, 1, 2}) {
      if (first + then == 0 || first >= world().size() || then >= world().size()) continue;
      INFO(first << " servers, then " << then);
      const SharedFolder folder;
      TrainingOptions options = first == 0 ? mirrored_with_adam() : with_servers(first);
      options.checkpoint_dir = folder.path;
      run_until(5, options, trained_by);
      const auto read = [&](const char* strategy, int servers) {
        TrainingOptions same = options;
        same.checkpoint_dir.clear();
        same.resume_from = checkpoint_path(folder.path, 5);
        same.strategy = strategy;
        if (auto* server = same.strategy.as<ParameterServer>()) server->servers = servers;
        same.steps = 9;
        return trained_by(same);
      };
      const auto here = read(then == 0 ? "mirrored" : "parameter_server", std::max(then, 1)),
                 there = read(first == 0 ? "mirrored" : "parameter_server", std::max(first, 1));
      CHECK_FALSE(here->hash().empty());
      // Batch norms see other parts of the batches where there are other numbers of workers.
      CHECK(relative_distance(parameters_of(*here), parameters_of(*there)) < 0.05);
    }
}

TEST_CASE("what servers save is what mirrored replicas read, to the bit") {
  for (const int servers : server_counts()) {
    const SharedFolder folder;
    TrainingOptions options = with_servers(servers);
    options.checkpoint_dir = folder.path;
    run_until(5, options, trained_by);
    const SavedStates saved(checkpoint_path(folder.path, 5));
    const MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
    const Sequential model = served_model();
    SoftmaxCrossEntropy loss;
    // On all ranks, on fewer, with servers and without: the values and states that were saved are the same numbers.
    const auto read_by = [&](const Communicator& some, int with) {
      MirroredOptions how = MirroredOptions::for_data(data, BatchPlan(data.size(), 25, shard_of(some, with)));
      if (with > 0) how.strategy = ParameterServer{.servers = with};
      how.platform.primitives = make_reference_primitives();
      MirroredStrategy strategy(some, model, loss, make_optimizer({.name = "adam"}), Schedule({.learning_rate = 0.05}),
                                how);
      const StateList states = saved.restore_into(strategy, some);
      std::string text = strategy.parameter_hash();
      double moments = 0;
      if (with == 0)
        for (const State& state : states.states())
          if (state.name.ends_with(".exp_avg"))
            for (const float number : to_file(state)) moments += std::abs(static_cast<double>(number));
      for (const StatePiece& piece : strategy.state().divided().pieces())
        if (piece.whole.name.ends_with(".exp_avg"))
          for (std::size_t i = 0; i < piece.count; ++i) moments += std::abs(static_cast<double>(piece.elements[i]));
      Communicator all = some;
      if (with > 0) all.allreduce(Tensor(std::span(&moments, 1)));
      return std::pair(text, moments);
    };
    const bool left_out = world().rank() == 0;
    const Communicator everybody = world().communicator();
    const Communicator some = everybody.split(left_out ? 1 : 0, world().rank());
    const auto mirrored = read_by(everybody, 0), served = read_by(everybody, servers), fewer = read_by(some, 0);
    CHECK(mirrored.second > 0);
    for (const auto& read : {served, fewer}) {
      CHECK(read.first == mirrored.first);
      CHECK(std::abs(read.second - mirrored.second) < 1e-9 * mirrored.second);
    }
    if (some.size() > 1) CHECK(read_by(some, 1).first == mirrored.first);
  }
}

TEST_CASE("tests, validation, the best epoch, an average and pruning work, the same on all ranks") {
  for (const int servers : server_counts()) {
    TrainingOptions options = with_servers(servers);
    options.validation_split = 0.2;
    options.keep_best = true;
    options.ema_decay = 0.5;
    options.accumulate = 2;
    options.clip_norm = 1;
    const auto best = trained_by(options);
    CHECK_FALSE(best->hash().empty());
    const auto results = world().communicator().gather_texts(std::to_string(best->result.loss));
    for (const std::string& result : results) CHECK(result == results.front());
    TrainingOptions pruning = with_servers(servers);
    pruning.prune = 0.8;
    check_pruned(*trained_by(pruning));
  }
}

TEST_CASE("predictions hold each test sample once, and the summary what was sent") {
  for (const int servers : server_counts()) {
    const SharedFolder folder;
    TrainingOptions options = with_servers(servers);
    options.predictions = folder.path / "outputs.safetensors";
    options.summary_json = folder.path / "summary.json";
    const auto training = trained_by(options);
    if (world().rank() != 0) continue;
    const auto outputs = read_safetensors(options.predictions);
    REQUIRE(outputs.tensors.size() == 1);
    std::vector<float> rows = outputs.tensors[0].values;
    REQUIRE(rows.size() == std::size_t{37} * 4);
    for (std::size_t row = 0; row < 37; ++row) CHECK(std::abs(rows[4 * row]) + std::abs(rows[4 * row + 1]) > 0);
    const std::string text = text_in(options.summary_json);
    require_mentions(text, {"\"servers\"", "\"count\": " + std::to_string(servers), "pushed_bytes", "pulled_bytes"});
  }
}

TEST_CASE("a step that is not finite is gone back from, or skipped") {
  for (const int servers : server_counts())
    for (const OnNonfinite way : {OnNonfinite::rollback, OnNonfinite::skip}) {
      const SharedFolder folder;
      TrainingOptions options = with_servers(servers);
      options.checkpoint_dir = folder.path;
      options.checkpoint_every.steps = 4;
      options.on_nonfinite = way;
      options.faults = {parse_fault("nan@7:0")};
      const auto training = trained_by(options);
      CHECK_FALSE(training->hash().empty());
      CHECK(std::isfinite(training->result.loss));
    }
}

TEST_CASE("a second fit goes on, and parameters can be given") {
  for (const int servers : server_counts()) {
    const SharedFolder folder;
    TrainingOptions options = with_servers(servers);
    options.save = folder.path / "model.safetensors";
    ServedTraining training(options);
    training.fit();
    const std::string once = training.hash();
    training.fit();
    CHECK(training.hash() != once);
    TrainingOptions given = with_servers(servers);
    given.init = options.save;
    given.steps = 1;
    const auto same = [&](TrainingOptions how) {
      const auto started = std::make_unique<ServedTraining>(std::move(how));
      started->fit();
      return relative_distance(parameters_of(*started), parameters_of(training));
    };
    CHECK(same(given) < 1);
    given.optimizer = {.name = "sgd"};
    given.clip_value = 1e-20;  // next to nothing changes
    CHECK(same(given) < 1e-6);
  }
}

TEST_CASE("what cannot be with servers is refused") {
  const int ranks = world().size();
  const auto refused = [](const TrainingOptions& options) {
    return message_of<InputError>([&] { trained_by(options); });
  };
  require_mentions(refused(with_servers(0)), {".servers is at least 1"});
  require_mentions(refused(with_servers(ranks)), {".servers", "no rank is left as a worker"});
  if (ranks == 1) return;
  TrainingOptions options = with_servers(1);
  options.audit_every = 2;
  require_mentions(refused(options), {".audit_every", ".strategy = parameter_server", ".strategy = mirrored"});
  options = with_servers(1);
  options.compression = Compression::automatic;
  require_mentions(refused(options), {".compression = auto", ".strategy = parameter_server"});
  options = with_servers(1);
  options.allreduce = AllreduceAlgorithm::ring;
  require_mentions(refused(options), {".allreduce = auto"});
  options = with_servers(1);
  options.shares = "measured";
  options.accumulate = 4;
  require_mentions(refused(options), {".shares = measured", ".strategy = parameter_server"});
  options = with_servers(1);
  options.optimizer.name = "lamb";
  require_mentions(refused(options), {"lamb", ".strategy = mirrored"});
}

}  // namespace parameter_server_training_test
