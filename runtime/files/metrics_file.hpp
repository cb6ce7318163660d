#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>

#include <ronda/runtime/core/event_sink.hpp>

namespace ronda {

/// `--metrics`: one JSON object a line and step, written as training goes: `step` (from 1), `epoch`, `loss`,
/// `train_accuracy`, `learning_rate`, `samples`. Numbers read back to the same bits; what is not finite is null.
/// Replaces what was in the file. A line goes to a buffer of fixed size, and the buffer to the file at least each
/// second and each epoch.
class MetricsFile final : public EventSink {
 public:
  /// Throws InputError where the file cannot be created.
  explicit MetricsFile(std::filesystem::path path);
  ~MetricsFile() override;
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  void on_step(const StepReport& report) override;
  void on_epoch(const EpochReport&) override { flush(); }
  /// Throws ResourceError where the disk does not take it.
  void flush();

 private:
  static constexpr std::size_t longest_line = 256;

  std::filesystem::path path_;
  int descriptor_;
  std::array<char, 64 * longest_line> buffer_;
  std::size_t used_ = 0;
  std::chrono::steady_clock::time_point flushed_;
};

}  // namespace ronda
