#include "mnist_application.hpp"

#include <iostream>
#include <optional>

#include <ronda/ronda.hpp>
#include <ronda/runtime/files/metrics_file.hpp>
#include <ronda/runtime/observe/terminal.hpp>

namespace ronda::apps {
namespace {

ConsoleOptions console_options(const CommandLine& command_line) {
  ConsoleOptions options;
  if (command_line.quiet) options.verbosity = Verbosity::quiet;
  if (command_line.verbose) options.verbosity = Verbosity::verbose;
  options.bar_width = terminal_width(2);
  options.table_on_terminal = terminal_width(1) > 0;
  return options;
}

}  // namespace

int train_on_mnist(CommandLine& command_line, int argc, char** argv, const std::function<Sequential()>& make_model) {
  const auto prepare = [&](WorldOptions& options) {
    const bool go_on = command_line.parse(argc, argv);
    options = command_line.world;
    return go_on;
  };
  return launch(argc, argv, prepare, [&](World& world) {
    std::optional<Mnist> mnist;
    std::optional<MetricsFile> metrics;
    agree(world.communicator(), [&] {
      mnist.emplace(load_mnist(command_line.data));
      if (world.rank() == 0 && !command_line.training.metrics.empty()) metrics.emplace(command_line.training.metrics);
    });
    Console console(std::cout, std::cerr, console_options(command_line));
    FanOut sinks;
    sinks.add(console);
    if (metrics) sinks.add(*metrics);
    Sequential model = make_model();
    SoftmaxCrossEntropy loss(command_line.label_smoothing);
    Trainer trainer(world, model, loss, command_line.training, &sinks);
    const Evaluation result = trainer.fit(mnist->train, mnist->test);
    if (world.rank() == 0 && !command_line.quiet)
      std::cout << "test accuracy " << result.accuracy * 100 << " %, "
                << static_cast<long>(trainer.statistics().samples_per_second()) << " samples/s" << std::endl;
    return 0;
  });
}

}  // namespace ronda::apps
