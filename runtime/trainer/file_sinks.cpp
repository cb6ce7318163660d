#include <ronda/core/error.hpp>
#include <ronda/runtime/io/metrics_file.hpp>
#include <ronda/runtime/io/metrics_table.hpp>
#include <ronda/runtime/io/tensorboard_file.hpp>
#include <ronda/runtime/trainer/file_sinks.hpp>

#include <utility>

namespace ronda {
namespace {

/// Writes events to a file until a write fails: the training continues without it.
class OptionalFile final : public EventSink {
 public:
  OptionalFile(std::unique_ptr<EventSink> file, EventSink& warned) : file_(std::move(file)), warned_(warned) {}

  void on_start(const StartReport& report) override { file_->on_start(report); }
  void on_step(const StepReport& report) override {
    attempt([&] { file_->on_step(report); });
  }
  void on_checkpoint(std::uint64_t step) override {
    attempt([&] { file_->on_checkpoint(step); });
  }
  void on_epoch(const EpochReport& report) override {
    attempt([&] { file_->on_epoch(report); });
  }

 private:
  template <class Write>
  void attempt(Write write) {
    if (file_ == nullptr) return;
    try {
      write();
    } catch (const ResourceError& error) {
      file_ = nullptr;
      warned_.on_message(Severity::warning, error.message() + "; training goes on, and nothing more is written there");
    }
  }

  std::unique_ptr<EventSink> file_;  ///< null: it could not be written
  EventSink& warned_;
};

}  // namespace

std::vector<std::unique_ptr<EventSink>> open_file_sinks(const TrainingOptions& options, EventSink& warned) {
  std::vector<std::unique_ptr<EventSink>> sinks;
  const auto add = [&](std::unique_ptr<EventSink> file) {
    sinks.push_back(std::make_unique<OptionalFile>(std::move(file), warned));
  };
  if (!options.metrics.empty()) add(std::make_unique<MetricsFile>(options.metrics, &warned));
  if (!options.metrics_csv.empty()) add(std::make_unique<MetricsTable>(options.metrics_csv, &warned));
  if (!options.tensorboard.empty()) add(std::make_unique<TensorBoardFile>(options.tensorboard));
  return sinks;
}

}  // namespace ronda
