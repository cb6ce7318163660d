#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <ronda/core/event_sink.hpp>

namespace ronda {

class LineFile;

/// `--metrics-csv`: a table with a row per step, for spreadsheets, R and pandas. The first line has the names of the
/// columns: `step` (from 1), `epoch`, `loss`, `train_accuracy` (or the loss's metric), `learning_rate`, `samples`,
/// `seconds` of the step; and the results of the epoch, in the row of its last step: `epoch_loss`, `epoch_accuracy`,
/// `epoch_seconds`, `test_loss`, `test_accuracy`, `validation_loss`, `validation_accuracy`. A cell without a finite
/// number is empty. Numbers are read back bitwise equal.
///
/// A new training replaces the file; a resumed training continues after the rows up to its checkpoint, as in
/// MetricsFile.
class MetricsTable final : public EventSink {
 public:
  /// @param warned  receives a warning if rows before a resumed step are missing; null: no warning
  /// Throws InputError if the file cannot be created, or another training writes to it.
  explicit MetricsTable(std::filesystem::path path, EventSink* warned = nullptr);
  ~MetricsTable() override;
  MetricsTable(const MetricsTable&) = delete;
  MetricsTable& operator=(const MetricsTable&) = delete;

  void on_start(const StartReport& report) override;
  void on_step(const StepReport& report) override;
  void on_checkpoint(std::uint64_t) override;
  void on_epoch(const EpochReport& report) override;

 private:
  std::unique_ptr<LineFile> file_;
  EventSink* warned_;
  bool started_ = false, has_metric_ = false;
  bool has_row_ = false;  ///< the newest line is a step's, without the results of its epoch
};

}  // namespace ronda
