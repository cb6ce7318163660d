#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <ronda/core/event_sink.hpp>

namespace ronda {

class LineFile;

/// `--metrics`: one line per step with a JSON object, written during training: `step` (from 1), `epoch`, `loss`,
/// `train_accuracy` (or the loss's metric: `train_mae`), `learning_rate`, `samples`, `seconds` of the step. The line of
/// an epoch's last step has the epoch's results too: `epoch_loss`, `epoch_accuracy`, `epoch_seconds` of its steps, and
/// after a test `test_loss`, `test_accuracy` and `test_metrics` (`{"top5": 0.998}`, single numbers only), or
/// `validation_…`. Numbers are read back bitwise equal; NaN and infinities are null.
///
/// A new training replaces the file. A resumed training continues after the lines up to its checkpoint, so that every
/// step has one line. All lines so far are in the file each second, each epoch, and before each checkpoint, except the
/// newest one, which is written at the next step or the end of the epoch. See LineFile.
class MetricsFile final : public EventSink {
 public:
  /// @param warned  receives a warning if lines before a resumed step are missing; null: no warning
  /// Throws InputError if the file cannot be created, or another training writes to it.
  explicit MetricsFile(std::filesystem::path path, EventSink* warned = nullptr);
  ~MetricsFile() override;
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  void on_start(const StartReport& report) override;
  void on_step(const StepReport& report) override;
  void on_checkpoint(std::uint64_t) override { flush(); }
  void on_epoch(const EpochReport& report) override;
  /// Writes all lines so far. Throws ResourceError if the disk refuses them, as on_step and on_epoch do; the file then
  /// ends with a complete line, and later lines are lost.
  void flush();

 private:
  /// Keys of the metric in a line.
  struct Keys {
    std::string train, epoch, test, validation;  ///< empty: no metric
  };

  [[nodiscard]] static Keys keys_for(const std::string& metric);

  std::unique_ptr<LineFile> file_;
  EventSink* warned_;
  bool started_ = false;
  std::string metric_;
  Keys keys_;
};

}  // namespace ronda
