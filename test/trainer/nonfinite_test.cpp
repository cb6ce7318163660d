// By default a training with numbers that are not finite ends in the step in which they appear, by name, and saves
// nothing.
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>
#include <ronda/runtime/trainer/trainer.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"
#include "support/toy_data.hpp"
#include "support/wrapped_loss.hpp"

using namespace ronda;
using namespace ronda::test;

namespace nonfinite_test {
namespace {

/// Softmax cross entropy whose gradient is infinite on the last rank from one step on, and whose loss never is.
WrappedLoss infinite_gradient(std::uint64_t step) {
  return WrappedLoss([step](const WrappedLoss::Run& run) {
    run();
    if (run.pass.mode == Mode::training && run.pass.step >= step && world().rank() + 1 == world().size())
      run.gradient.as<float>()[0] = std::numeric_limits<float>::infinity();
  });
}

Sequential cnn() { return Sequential(Conv2d(8, 3), ReLU(), MaxPool2d(2), Flatten(), Dense(9), ReLU(), Dense(4)); }

/// What a training says that saves its parameters, and checkpoints in every step. Nothing is left of what is not
/// finite.
std::string message_of_training(const Loss& loss, const MemoryDataset& data, TrainingOptions options,
                                std::size_t saved) {
  ::setenv("RONDA_CACHE_DIR", "/dev/null/none", 1);
  Communicator all = world().communicator();
  std::optional<TemporaryFolder> folder;
  if (world().rank() == 0) folder.emplace();
  const std::filesystem::path path = all.broadcast_text(folder ? folder->path().string() : std::string());
  options.threads = 1;
  options.global_batch_size = 16;
  options.shuffle = false;
  options.save = path / "model.safetensors";
  options.checkpoint_dir = path / "checkpoints";
  options.checkpoint_every.steps = 1;
  options.keep = 100;
  Sequential model = cnn();
  Trainer trainer(world(), model, loss, options);
  std::string message = message_of<Error>([&] { trainer.fit(data, data); });
  all.barrier();
  if (folder) {
    CHECK_FALSE(std::filesystem::exists(options.save));
    std::size_t checkpoints = 0;
    for (const auto& entry : std::filesystem::directory_iterator(options.checkpoint_dir))
      checkpoints += entry.path().filename().string().starts_with("step-") ? 1 : 0;
    CHECK(checkpoints <= saved);
  }
  all.barrier();
  return message;
}

std::string last_rank() { return "on rank " + std::to_string(world().size() - 1) + " on "; }

}  // namespace

TEST_CASE("one NaN pixel ends a training in the step that meets it") {
  std::vector<float> pixels(48 * 63);
  std::vector<std::int32_t> labels(48, 1);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 17) / 17;
  pixels[63 * 47 + 30] = std::nanf("");  // the last sample of step 3, the last rank's
  const MemoryDataset data(std::move(pixels), {9, 7, 1}, std::move(labels));
  SoftmaxCrossEntropy loss;
  require_mentions(message_of_training(loss, data, {.epochs = 2}, 2),
                   {"step 3 is not finite: sample 47 (its field 'input' has nan) of the training data"});
}

TEST_CASE("an infinite gradient ends it too where the loss is finite") {
  const MemoryDataset data = toy_images(48, {9, 7, 1}, 4);
  for (const char* optimizer : {"sgd", "momentum", "adam"}) {
    const WrappedLoss loss = infinite_gradient(2);
    TrainingOptions options;
    options.optimizer.name = optimizer;
    require_mentions(message_of_training(loss, data, options, 1),
                     {"step 2 is not finite", "dense2", "after the update", last_rank(), "the gradient of dense2"});
  }
}

TEST_CASE("an update that overflows ends it, also in the last step") {
  const MemoryDataset data = toy_images(48, {9, 7, 1}, 4);
  SoftmaxCrossEntropy loss, another_loss;
  TrainingOptions options;
  options.steps = 1;
  options.groups = {{.pattern = "*", .learning_rate = 1e39}};  // infinite in float32
  require_mentions(message_of_training(loss, data, options, 0), {"step 1 is not finite", "after the update"});
  options.on_nonfinite = OnNonfinite::skip;  // too late to skip it
  require_mentions(message_of_training(another_loss, data, options, 0), {"step 1 is not finite", "nothing is left"});
}

TEST_CASE("all ranks of an update by parts see what one of them finds") {
  const MemoryDataset data = toy_images(48, {9, 7, 1}, 4);
  for (const std::size_t node_update_bytes : {std::size_t{0}, std::numeric_limits<std::size_t>::max()}) {
    Sequential model = cnn();
    const WrappedLoss loss = infinite_gradient(2);
    const BatchPlan plan(data.size(), 16, shard_of(world().communicator()));
    BatchLoader loader(data, SampleOrder(data.size(), 1, true), plan);
    MirroredOptions options = MirroredOptions::for_data(data, plan);
    options.node_update_bytes = node_update_bytes;
    MirroredStrategy strategy(world().communicator(), model, loss, make_optimizer({.name = "momentum"}),
                              Schedule({.learning_rate = 0.05}), options);
    const StepResult good = strategy.train_step(loader.next());
    CHECK((!good.spoiled && !good.nonfinite));
    const Batch& batch = loader.next();
    const StepResult bad = strategy.train_step(batch);
    CHECK((bad.spoiled && !bad.nonfinite));
    CHECK(std::isfinite(bad.loss));
    require_mentions(strategy.explain_nonfinite(batch), {last_rank(), "after the update"});
  }
}

}  // namespace nonfinite_test
