#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>

#include <ronda/core/event_sink.hpp>

namespace ronda {

class Descriptor;

/// `--metrics`: one JSON object a line and step, written as training goes: `step` (from 1), `epoch`, `loss`,
/// `train_accuracy`, `learning_rate`, `samples`. Numbers read back to the same bits; what is not finite is null.
/// Training from the start replaces what was in the file, and training that goes on from a checkpoint goes on behind
/// the lines up to there, so that every step has one line. A line goes to a buffer of fixed size, and the buffer to the
/// file at least each second, each epoch, and before a checkpoint is taken. Strangers' links and files are not written
/// to; see AtomicFile.
class MetricsFile final : public EventSink {
 public:
  /// Throws InputError where the file cannot be created.
  explicit MetricsFile(std::filesystem::path path);
  ~MetricsFile() override;
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  void on_start(std::uint64_t step) override;
  void on_step(const StepReport& report) override;
  void on_checkpoint(std::uint64_t) override { flush(); }
  void on_epoch(const EpochReport&) override { flush(); }
  /// Throws ResourceError where the disk does not take it.
  void flush();

 private:
  static constexpr std::size_t longest_line = 256;

  std::filesystem::path path_;
  std::unique_ptr<Descriptor> file_;
  std::array<char, 64 * longest_line> buffer_;
  std::size_t used_ = 0;
  bool started_ = false;
  std::chrono::steady_clock::time_point flushed_;
};

}  // namespace ronda
