#include "training_application.hpp"

#include <functional>
#include <iostream>
#include <optional>

#include <ronda/core/parallel.hpp>
#include <ronda/ronda.hpp>

namespace ronda::apps {
namespace {

Verbosity verbosity(const CommandLine& command_line) {
  if (command_line.quiet) return Verbosity::quiet;
  return command_line.verbose ? Verbosity::verbose : Verbosity::normal;
}

void print_result(const Metric& metric, const Evaluation& result, bool tested, const std::string& more,
                  const StepStatistics& statistics) {
  std::string text;
  if (tested)
    text = metric.name.empty() ? "test loss " + Metric().text(result.loss)
                               : "test " + metric.name + " " + metric.text(result.metric);
  if (tested && !more.empty()) text += ", " + more;
  for (const MetricValue& value : result.metrics)
    if (value.is_number()) text += ", " + value.metric.name + " " + value.metric.text(value.number());
  if (statistics.steps() > 0)  // none where a training goes on that was over
    text +=
        (text.empty() ? "" : ", ") + std::to_string(static_cast<long>(statistics.samples_per_second())) + " samples/s";
  if (!text.empty()) std::cout << text << std::endl;
}

}  // namespace

std::filesystem::path find_shared(std::string_view name) {
  std::error_code ignored;  // a folder that cannot be looked into has no data for us
  auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (; folder.has_relative_path(); folder = folder.parent_path())
    for (const char* place : {"share", "share/ronda"})
      if (std::filesystem::is_directory(folder / place / name, ignored)) return folder / place / name;
  return {};
}

int launch_with(CommandLine& command_line, int argc, char** argv, const std::function<int(World&)>& body) {
  spin_briefly(argv);
  const auto prepare = [&](WorldOptions& options) {
    const bool go_on = command_line.parse(argc, argv);
    options = command_line.world;
    return go_on;
  };
  return launch(argc, argv, prepare, body, std::cref(command_line.names()));
}

int train(World& world, const CommandLine& command_line, const Layer& model, const Loss& loss,
          const Dataset& train_data, const Dataset& test_data,
          const std::vector<std::shared_ptr<const SummedMetric>>& metrics,
          const std::function<std::string(const Evaluation&)>& describe,
          const std::function<void(Strategy&)>& afterwards) {
  TrainingOptions options = command_line.training;
  Console console(verbosity(command_line), command_line.log_every, std::cref(command_line.names()));
  if (world.rank() == 0)
    for (const std::string& warning : command_line.warnings()) console.on_warning(warning);
  const std::optional<StopSignals>& signals = command_line.stop_signals;
  if (signals) options.leave = [&] { return signals->received(); };
  Trainer trainer(world, model, loss, options, &console);
  for (const auto& metric : metrics) trainer.add(metric);
  const Evaluation result = trainer.fit(train_data, test_data);
  if (trainer.left()) {
    if (signals) signals->ignore_from_now_on();
    return static_cast<int>(ExitStatus::stopped_resumable);
  }
  if (world.rank() == 0 && !command_line.quiet)
    print_result(loss.metric(), result, test_data.size() > 0, describe ? describe(result) : "", trainer.statistics());
  if (afterwards) afterwards(trainer.strategy());
  return 0;
}

}  // namespace ronda::apps
