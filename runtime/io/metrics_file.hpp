#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <ronda/core/event_sink.hpp>

namespace ronda {

class Descriptor;

/// `--metrics`: one JSON object a line and step, written as training goes: `step` (from 1), `epoch`, `loss`,
/// `train_accuracy` (or whatever the loss measures: `train_mae`), `learning_rate`, `samples`, `seconds` of the step.
/// The line of an epoch's last step has the epoch's results too: `epoch_loss`, `epoch_accuracy`, `epoch_seconds` of its
/// steps, and where there was a test `test_loss`, `test_accuracy` and, of metrics that are numbers, `test_metrics`
/// (`{"top5": 0.998}`), or `validation_…`. Numbers read back to the same bits; what is not finite is null.
///
/// A training from the start replaces the file. A resumed training continues after the lines up to its checkpoint, so
/// that every step has one line. Lines go to a buffer of fixed size, and the buffer to the file at least each second,
/// each epoch, and before a checkpoint is taken; the newest line follows at the next step or the epoch's end. Other
/// users' links and files are not written to; see AtomicFile.
///
/// The file is locked during the lifetime of this object, if its file system has locks.
class MetricsFile final : public EventSink {
 public:
  /// @param warned  hears of a resume for which the file lacks lines; null: nobody
  /// Throws InputError where the file cannot be created, or another training writes it.
  explicit MetricsFile(std::filesystem::path path, EventSink* warned = nullptr);
  ~MetricsFile() override;
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  void on_start(const StartReport& report) override;
  void on_step(const StepReport& report) override;
  void on_checkpoint(std::uint64_t) override { flush(); }
  void on_epoch(const EpochReport& report) override;
  /// Writes all lines so far. Throws ResourceError if the disk refuses them, as on_step and on_epoch do; the file then
  /// ends with a whole line, and later lines are lost.
  void flush();

 private:
  static constexpr std::size_t longest_step = 1024;  ///< bytes of a step's line; an epoch's may be longer
  /// Names of a metric in a line.
  struct Keys {
    std::string train, epoch, test, validation;  ///< empty: there is no metric
  };

  [[nodiscard]] static Keys keys_for(const std::string& metric);
  void push_last();
  void write_buffer();
  void write(std::string_view text);
  void cut(std::uintmax_t bytes);
  void replace_last(std::string_view before, std::string_view after);

  std::filesystem::path path_;
  EventSink* warned_;
  std::unique_ptr<Descriptor> file_;
  std::array<char, 64 * longest_step> buffer_;
  std::size_t used_ = 0;
  std::string last_;              ///< the line of the newest step; empty: its epoch is over
  bool last_is_written_ = false;  ///< it is in the file already
  bool started_ = false, regular_ = false;
  std::string metric_;
  Keys keys_;
  std::chrono::steady_clock::time_point flushed_;
};

}  // namespace ronda
