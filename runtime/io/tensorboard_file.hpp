#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/event_sink.hpp>

namespace ronda {

class Descriptor;

/// `--tensorboard`: scalars for TensorBoard, in one file per run, `DIR/events.out.tfevents.…`. After each step
/// `train/loss`, `train/accuracy` (or the loss's metric), `learning_rate` and `samples_per_second`; after each epoch
/// `epoch/loss` and `epoch/accuracy` of training, and after a test `test/…` or `validation/…`, also for further metrics
/// that are single numbers. A run that resumes from a checkpoint makes TensorBoard discard the steps after it.
///
/// The format: records with masked CRC-32C (TensorFlow, "TFRecord and tf.train.Example"), each an Event of
/// tensorflow/core/util/event.proto. Records are collected in a buffer of fixed size, which is written to the file at
/// least each second, each epoch, and before each checkpoint.
class TensorBoardFile final : public EventSink {
 public:
  /// Creates the folder if it is missing. Throws InputError if folder or file cannot be created.
  explicit TensorBoardFile(const std::filesystem::path& folder);
  ~TensorBoardFile() override;
  TensorBoardFile(const TensorBoardFile&) = delete;
  TensorBoardFile& operator=(const TensorBoardFile&) = delete;

  void on_start(const StartReport& report) override;
  void on_step(const StepReport& report) override;
  void on_checkpoint(std::uint64_t) override { flush(); }
  void on_epoch(const EpochReport& report) override;
  /// Writes the buffer to the file. Throws ResourceError if the disk refuses it.
  void flush();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  struct Tags {
    std::string train, epoch, test, validation;  ///< tags of the metric; empty: no metric
  };

  void add_record(std::string_view event);
  void begin_event(std::uint64_t step);
  void add_value(std::string_view tag, double value);
  void end_event();
  void add_metrics(const std::string& data, const std::vector<MetricValue>& metrics);

  std::filesystem::path path_;
  std::unique_ptr<Descriptor> file_;
  std::array<char, std::size_t{1} << 15> buffer_;
  std::size_t used_ = 0;
  std::string event_, values_, value_;  ///< the current event; their memory is reused
  Tags tags_;
  std::uint64_t step_ = 0;
  std::chrono::steady_clock::time_point flushed_;
};

}  // namespace ronda
