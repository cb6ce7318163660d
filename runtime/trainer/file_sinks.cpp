#include <ronda/runtime/io/metrics_file.hpp>
#include <ronda/runtime/io/tensorboard_file.hpp>
#include <ronda/runtime/trainer/file_sinks.hpp>

namespace ronda {

std::vector<std::unique_ptr<EventSink>> open_file_sinks(const TrainingOptions& options) {
  std::vector<std::unique_ptr<EventSink>> sinks;
  if (!options.metrics.empty()) sinks.push_back(std::make_unique<MetricsFile>(options.metrics));
  if (!options.tensorboard.empty()) sinks.push_back(std::make_unique<TensorBoardFile>(options.tensorboard));
  return sinks;
}

}  // namespace ronda
