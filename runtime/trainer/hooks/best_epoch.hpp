#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>

#include <ronda/core/message.hpp>
#include <ronda/runtime/checkpoint/state_copy.hpp>
#include <ronda/runtime/trainer/hooks/improvement.hpp>
#include <ronda/runtime/trainer/training_run.hpp>

namespace ronda {

/// Keeps a copy of the model as it was after the epoch with the least tested loss, and gives it back when the training
/// ends: what is returned, predicted and saved by `--save` is that model's. Where checkpoints are taken, the copy lies
/// beside them, as `DIR/best-step-N.safetensors`; checkpoints themselves hold the newest model, to go on from.
class BestEpoch final : public Hook {
 public:
  void on_start(TrainingRun& run) override;
  void after_epoch(TrainingRun& run, const EpochReport& report) override;
  void before_save(TrainingRun& run, CheckpointManifest& manifest) override;
  void on_end(TrainingRun& run) override;
  void summarize(Summary& summary) const override;

 private:
  void go_on(TrainingRun& run);
  [[nodiscard]] Message read(TrainingRun& run, const std::filesystem::path& path);
  void write(TrainingRun& run) const;

  Improvement loss_;
  std::optional<StateCopy> model_;
  std::uint64_t epoch_ = 0, step_ = 0;  ///< of the copy; 0: there is none
  /// The steps of the best models that the two newest checkpoints name. These files stay: one checkpoint may be waiting
  /// for its publication, and the other one's parts be being written.
  std::array<std::uint64_t, 2> named_{std::numeric_limits<std::uint64_t>::max(),
                                      std::numeric_limits<std::uint64_t>::max()};
  Evaluation result_;
};

}  // namespace ronda
