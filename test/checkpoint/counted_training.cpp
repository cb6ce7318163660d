// A small training as the applications are, with all their options, that writes down which samples each step has used.
// A sample's target is its number, which the loss sees. Environment:
//   COUNT_LOG      PREFIX: rank R appends to PREFIX.R a line a step, `ATTEMPT STEP SAMPLE…`
//   COUNT_ATTEMPT  which start of the training this is
//   COUNT_DELAY    microseconds that a step takes longer
#include <CLI/CLI.hpp>

#include <ronda/layers/layers.hpp>

#include "../../apps/training_application.hpp"
#include "support/toy_data.hpp"
#include "support/wrapped_loss.hpp"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace {

using namespace ronda;
using test::WrappedLoss;

std::string from_environment(const char* name, const char* otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : text;
}

/// Images whose targets are their numbers; `labels` has what they show.
MemoryDataset numbered(std::size_t samples, std::vector<std::int32_t>& labels, std::uint64_t stream) {
  const MemoryDataset toys = test::toy_images(samples, {9, 7, 1}, 4, stream);
  Batch all(toys.fields(), samples);
  std::vector<std::uint64_t> order(samples);
  std::vector<std::int32_t> numbers(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    order[i] = i;
    numbers[i] = static_cast<std::int32_t>(i);
  }
  toys.read({order}, all);
  const auto pixels = all.input().as<float>();
  const auto shown = all.target().as<std::int32_t>();
  labels.assign(shown.begin(), shown.end());
  return {{pixels.begin(), pixels.end()}, {9, 7, 1}, numbers};
}

/// Looks up the labels of samples, and writes down whom it has seen.
class Counter {
 public:
  Counter(std::vector<std::int32_t> labels, int rank)
      : labels_(std::move(labels)),
        delay_(std::stol(from_environment("COUNT_DELAY", "0"))),
        attempt_(from_environment("COUNT_ATTEMPT", "1")) {
    if (const auto prefix = from_environment("COUNT_LOG", ""); !prefix.empty())
      log_.open(prefix + "." + std::to_string(rank), std::ios::app);
  }
  void operator()(const WrappedLoss::Run& run) {
    const auto numbers = run.target.as<std::int32_t>();
    if (run.pass.mode == Mode::training) write_down(numbers, run.pass);
    std::vector<std::int32_t> found;
    for (const std::int32_t number : numbers) found.push_back(labels_[static_cast<std::size_t>(number)]);
    run.of(Tensor(std::span(found)));
  }

 private:
  void write_down(std::span<const std::int32_t> numbers, const Pass& pass) {
    const auto weights = pass.weights->as<float>();
    std::string line = attempt_ + " " + std::to_string(pass.step);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (weights[i] > 0) line += " " + std::to_string(numbers[i]);
    log_ << line + "\n" << std::flush;
    std::this_thread::sleep_for(std::chrono::microseconds(delay_));
  }

  std::vector<std::int32_t> labels_;
  long delay_;
  std::string attempt_;
  std::ofstream log_;
};

}  // namespace

int main(int argc, char** argv) {
  apps::CommandLine options("counted_training", "Trains on toys, and counts them.",
                            {.epochs = 3, .learning_rate = 0.05});
  double smoothing = 0;
  options.app().add_option("--label-smoothing", smoothing, "Of the targets");
  return apps::launch_with(options, argc, argv, [&](World& world) {
    options.training.variant = "label smoothing " + std::to_string(smoothing);
    std::vector<std::int32_t> labels;
    const MemoryDataset data = numbered(997, labels, 1);  // a prime: no batch divides it
    Sequential model(Conv2d(4, 3), ReLU(), MaxPool2d(2), Flatten(), Dense(8), ReLU(), Dense(4));
    Counter counter(std::move(labels), world.rank());
    const WrappedLoss loss([&counter](const WrappedLoss::Run& run) { counter(run); });
    return apps::train(world, options, model, loss, data, data);
  });
}
