#include <limits>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/trainer/trainer.hpp>
#include <ronda/runtime/trainer/training_run.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"
#include "trainer/saved_training.hpp"

using namespace ronda;
using namespace ronda::test;

namespace monitor_target_test {
namespace {

struct Heard final : EventSink {
  void on_note(std::string_view text) override { notes += std::string(text) + "\n"; }
  std::string notes;
};

/// The test losses of a training's epochs.
std::vector<double> losses_of(TrainingOptions options, EventSink* sink = nullptr) {
  const Sequential model{Flatten(), Dense(4)};
  const SoftmaxCrossEntropy loss;
  Trainer trainer(world(), model, loss, std::move(options), sink);
  std::vector<double> losses;
  trainer.add({.epoch = [&](const EpochReport& report) { losses.push_back(TrainingRun::tested_loss(report)); }});
  static_cast<void>(trainer.fit(toy_images(90, {9, 7, 1}, 4), toy_images(40, {9, 7, 1}, 4)));
  return losses;
}

TrainingOptions falling() {
  TrainingOptions options = small({});
  options.epochs = 6;
  return options;
}

/// A loss that the epoch (from 0) reaches, and the one before does not.
double between(const std::vector<double>& losses, std::size_t epoch) { return (losses[epoch - 1] + losses[epoch]) / 2; }

}  // namespace

TEST_CASE("a training ends after the first epoch whose test reaches the target loss") {
  const std::vector<double> all = losses_of(falling());
  REQUIRE(all.size() == 6);
  for (std::size_t epoch = 1; epoch < all.size(); ++epoch) {
    REQUIRE(all[epoch] < all[epoch - 1]);
    TrainingOptions options = falling();
    options.target_loss = between(all, epoch);
    Heard heard;
    CHECK(losses_of(options, &heard).size() == epoch + 1);
    if (world().rank() == 0 && epoch + 1 < all.size())
      require_mentions(heard.notes, {"ended after epoch " + std::to_string(epoch + 1), "test loss", "target"});
  }
  TrainingOptions options = falling();
  options.target_loss = -1;  // never reached
  CHECK(losses_of(options).size() == 6);
}

TEST_CASE("a training that reached its target loss ends at once when it is resumed, unless the target is lower") {
  const SharedFolder folder;
  TrainingOptions options = saving_in(folder, falling());
  const std::vector<double> all = losses_of(falling());
  options.target_loss = between(all, 1);
  CHECK(losses_of(options).size() == 2);
  options.resume = true;
  CHECK(losses_of(options).empty());
  options.target_loss = between(all, 2);
  CHECK(losses_of(options).size() == 1);
}

TEST_CASE("a target loss that cannot work is refused") {
  const auto refused = [](const TrainingOptions& options, const std::vector<const char*>& mentions) {
    const std::string message = message_of<InputError>([&] { losses_of(options); });
    for (const char* text : mentions) require_mentions(message, {text});
  };
  TrainingOptions options = falling();
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    options.target_loss = bad;
    refused(options, {".target_loss", "finite"});
  }
  options.target_loss = 0.5;
  options.prune = 0.5;
  refused(options, {".target_loss has no meaning with .prune"});
  options.prune = 0;
  const Sequential model{Flatten(), Dense(4)};
  const SoftmaxCrossEntropy loss;
  Trainer untested(world(), model, loss, options);
  require_mentions(message_of<InputError>([&] {
                     untested.fit(toy_images(90, {9, 7, 1}, 4));
                   }),
                   {"target_loss", "no test data"});
}

}  // namespace monitor_target_test
