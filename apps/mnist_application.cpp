#include "mnist_application.hpp"

#include <iostream>
#include <optional>

#include <ronda/core/parallel.hpp>
#include <ronda/ronda.hpp>
#include <ronda/runtime/io/metrics_file.hpp>
#include <ronda/runtime/trainer/node_data.hpp>

namespace ronda::apps {
namespace {

Verbosity verbosity(const CommandLine& command_line) {
  if (command_line.quiet) return Verbosity::quiet;
  return command_line.verbose ? Verbosity::verbose : Verbosity::normal;
}

Mnist load(const World& world, const std::filesystem::path& folder) {
  try {
    return load_mnist(world.communicator(), folder);
  } catch (const InputError& error) {
    InputError with_remedy(std::string(error.what()) + " (--data DIR names another folder)");
    if (error.agreed()) with_remedy.set_agreed();
    throw with_remedy;
  }
}

}  // namespace

int train(World& world, const CommandLine& command_line, Layer& model, Loss& loss, const Dataset& train_data,
          const Dataset& test_data) {
  TrainingOptions options = command_line.training;
  std::optional<MetricsFile> metrics;
  agree(world.communicator(), [&] {
    if (world.rank() == 0 && !options.metrics.empty()) metrics.emplace(options.metrics);
  });
  Console console(verbosity(command_line));
  FanOut sinks;
  sinks.add(console);
  if (metrics) sinks.add(*metrics);
  const std::optional<StopSignals>& signals = command_line.stop_signals;
  if (signals) options.leave = [&] { return signals->received(); };
  Trainer trainer(world, model, loss, options, &sinks);
  const Evaluation result = trainer.fit(train_data, test_data);
  if (trainer.left()) {
    if (signals) signals->ignore_from_now_on();
    return static_cast<int>(ExitStatus::stopped_resumable);
  }
  if (world.rank() == 0 && !command_line.quiet) {
    std::cout << "test accuracy " << result.accuracy * 100 << " %";
    if (trainer.statistics().steps() > 0)  // none where a training goes on that was over
      std::cout << ", " << static_cast<long>(trainer.statistics().samples_per_second()) << " samples/s";
    std::cout << std::endl;
  }
  return 0;
}

int train_on_mnist(CommandLine& command_line, int argc, char** argv, const std::function<Sequential()>& make_model) {
  return launch_with(command_line, argc, argv, [&](World& world) {
    const Mnist mnist = load(world, command_line.data);
    Sequential model = make_model();
    SoftmaxCrossEntropy loss(command_line.label_smoothing);
    return train(world, command_line, model, loss, mnist.train, mnist.test);
  });
}

int launch_with(CommandLine& command_line, int argc, char** argv, const std::function<int(World&)>& body) {
  spin_briefly(argv);
  const auto prepare = [&](WorldOptions& options) {
    const bool go_on = command_line.parse(argc, argv);
    options = command_line.world;
    return go_on;
  };
  return launch(argc, argv, prepare, body);
}

}  // namespace ronda::apps
