#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/runtime/checkpoint/checkpoint_writer.hpp>
#include <ronda/runtime/checkpoint/folder_lock.hpp>
#include <ronda/runtime/checkpoint/snapshot.hpp>
#include <ronda/runtime/io/checkpoint_manifest.hpp>

namespace ronda {

/// How often: each so many steps, or each so many seconds; neither: only at the end.
struct CheckpointInterval {
  std::uint64_t steps = 0;
  double seconds = 0;
};

/// `100` (steps), `30s`, `10m`, `1.5h`. Throws InputError.
[[nodiscard]] CheckpointInterval parse_checkpoint_interval(std::string_view text);

struct CheckpointOptions {
  std::filesystem::path directory;
  CheckpointInterval every;
  std::size_t keep = 3;  ///< checkpoints that stay; 1 or more
  /// Seconds that another run in the same directory is waited for; where it is not given, see FolderLock.
  std::optional<double> patience = {};
  /// A save starts at the step it is due after; the training waits for an earlier save that still runs. For trainings
  /// that depend on which steps are saved.
  bool on_time = false;
};

/// Saves a training while it runs. All ranks hold one and use it at the same steps:
///
///     strategy.raise(checkpointer.flags());                 // what this rank has to say in the step
///     const StepResult result = strategy.train_step(batch);
///     if (checkpointer.after_step(result.flags, step)) checkpointer.save(manifest);
///     …
///     checkpointer.finish();
///
/// `save` copies this rank's share of the states in memory (see Snapshot); a thread of its own writes the copy. Each
/// rank reports in the control blocks of the following steps when its part is on disk. After the last part, rank 0's
/// thread writes the manifest and renames the folder: from then on the checkpoint exists. So saving costs the training
/// a copy, and no message. One checkpoint is written at a time. If the next is due earlier, it is taken when the first
/// is written; with `on_time` the training waits for the first.
///
/// If a part cannot be written, a warning is printed and the checkpoint is dropped; earlier ones stay, and the next is
/// tried. If the disk is full, the oldest checkpoint is removed, as long as a newer whole one stays, and the parts are
/// written once more; from then on fewer are kept.
class Checkpointer {
 public:
  /// Makes the directory, keeps it for this run (FolderLock), and sees by a token that all ranks look at the same one
  /// and that it takes what they write. Removes what earlier runs left half-written. Collective; throws InputError,
  /// agreed.
  /// @param sink  rank 0's; outlives this object
  Checkpointer(Communicator communicator, CheckpointOptions options, Faults faults, EventSink& sink);

  /// What is saved, and what device changes it; the tensors outlive this object. Collective; once, before the first
  /// save.
  void bind(std::span<const State> states, const ComputeDevice& device = ComputeDevice::processor());

  /// The flags that this rank raises in the next step. Not collective; cheap.
  [[nodiscard]] StepFlags flags() const;
  /// Takes the flags that all ranks raised in `step`. True, on all ranks, if the training must be saved now.
  /// Collective: all ranks call it after the same step; it sends nothing unless a part could not be written, or is
  /// waited for.
  [[nodiscard]] bool after_step(const StepFlags& total, std::uint64_t step);
  /// Saves the training as it is. Rank 0's manifest counts, and its ranks and parts are filled in here. Call it only
  /// after after_step returned true: not during another save.
  void save(CheckpointManifest manifest);
  /// Saves the training as it is, for the last time; first waits for a save that still runs. Collective.
  void save_last(CheckpointManifest manifest);
  /// Waits until all that was saved is on disk, or has failed. Collective. True where the last save is there.
  bool finish();
  /// After the last finish: another run may have the directory. Not collective; nothing is saved from here on.
  void release() noexcept { lock_.reset(); }

  [[nodiscard]] const CheckpointOptions& options() const noexcept { return options_; }
  /// Seconds that training has waited for saving so far.
  [[nodiscard]] double exposed_seconds() const noexcept { return exposed_seconds_; }
  /// Seconds from a save to its end, of the slowest so far; on rank 0, otherwise 0.
  [[nodiscard]] double slowest_seconds() const noexcept { return slowest_seconds_; }
  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }  ///< checkpoints; on rank 0

 private:
  void check_directory();
  void settle(bool failed);
  void settle_under_way();
  [[nodiscard]] bool write_in_freed_room();
  [[nodiscard]] bool parts_lack_room();
  [[nodiscard]] std::vector<std::string> failures_of_parts();
  void warn_not_written(std::uint64_t step, const std::string& why);
  void tell_removed();
  void hear_of_publication();
  void wait_for_all(const std::function<bool()>& done);

  Communicator communicator_;
  CheckpointOptions options_;
  EventSink& sink_;
  std::optional<FolderLock> lock_;  ///< rank 0's
  std::optional<Snapshot> snapshot_;
  std::vector<State> counters_;
  std::vector<std::string> averaged_;  ///< names
  CheckpointManifest manifest_;        ///< of the one under way, or the last
  struct {
    std::uint64_t step = 0;
    double saved = 0;       ///< when
  } publication_;           ///< the one that rank 0's thread publishes, or published last
  bool under_way_ = false;  ///< on some rank a part is being written; the same on all
  bool due_ = false;        ///< the same on all ranks
  bool failed_ = false;     ///< the last save did
  double last_save_ = 0;
  double exposed_seconds_ = 0, slowest_seconds_ = 0;
  std::uint64_t written_ = 0;
  std::unique_ptr<CheckpointWriter> writer_;  ///< after what it reads
};

}  // namespace ronda
