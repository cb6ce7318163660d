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
#include <ronda/runtime/checkpoint/checkpoint_options.hpp>
#include <ronda/runtime/checkpoint/checkpoint_writer.hpp>
#include <ronda/runtime/checkpoint/folder_lock.hpp>
#include <ronda/runtime/checkpoint/snapshot.hpp>
#include <ronda/runtime/io/checkpoint_manifest.hpp>

namespace ronda {

struct CheckpointOptions {
  std::filesystem::path directory;
  CheckpointInterval every;
  std::size_t keep = 3;  ///< checkpoints to keep, at least 1
  /// Seconds to wait for another run in the same directory; the default is in FolderLock.
  std::optional<double> patience = {};
  /// A save starts exactly at the step when it is due; the training waits for an earlier save that still runs. For
  /// trainings whose results depend on which steps are saved.
  bool on_time = false;
  /// A thread writes the saves; otherwise whoever calls Checkpointer::step does.
  bool thread = true;
};

/// Saves a training while it runs. All ranks hold one and use it at the same steps:
///
///     strategy.raise(checkpointer.flags());                 // what this rank has to say in the step
///     const StepResult result = strategy.train_step(batch);
///     if (checkpointer.after_step(result.flags, step)) checkpointer.save(manifest);
///     …
///     checkpointer.finish();
///
/// `save` copies this rank's share of the states in memory (see Snapshot); a separate thread writes the copy. Each rank
/// reports in the control blocks of the following steps when its part is on disk. After the last part, rank 0's thread
/// writes the manifest and renames the folder: from then on the checkpoint exists. Saving therefore costs the training
/// one copy, and no message. Only one checkpoint is written at a time. If the next one is due earlier, it is taken when
/// the first is written; with `on_time` the training waits for the first.
///
/// If a part cannot be written, a warning is printed and the checkpoint is dropped; earlier ones stay, and the next one
/// is attempted. If the disk is full, the oldest checkpoint is removed, provided that a newer complete one stays, and
/// the parts are written again; from then on fewer checkpoints are kept.
class Checkpointer {
 public:
  /// Makes the directory, locks it for this run (FolderLock), and checks with a token that all ranks see the same
  /// directory and can write to it. Removes partly written checkpoints of earlier runs. Collective; throws InputError,
  /// agreed.
  /// @param sink     rank 0's; outlives this object
  /// @param storage  outlives this object
  Checkpointer(Communicator communicator, CheckpointOptions options, Faults faults, EventSink& sink,
               Storage& storage = file_system());

  /// Sets the states to save and the device that changes them. The tensors must outlive this object. Collective; call
  /// it once, before the first save.
  void bind(std::span<const State> states, const ComputeDevice& device = ComputeDevice::processor());

  /// The flags that this rank raises in the next step. Not collective; cheap.
  [[nodiscard]] StepFlags flags() const;
  /// Takes the flags that all ranks raised in `step`. Returns true, on all ranks, if the training must be saved now.
  /// Collective: all ranks call it after the same step. Sends nothing, except if a part could not be written or must be
  /// waited for.
  [[nodiscard]] bool after_step(const StepFlags& total, std::uint64_t step);
  /// Saves the current state of the training. Rank 0's manifest is used; its ranks and parts are filled in here. Call
  /// it only after after_step returned true: not during another save.
  void save(CheckpointManifest manifest);
  /// Saves the current state for the last time; first waits for a running save. Collective.
  void save_last(CheckpointManifest manifest);
  /// Waits until all saves are on disk or have failed. Collective. Returns true if the last save succeeded.
  bool finish();
  /// Writes the next piece of a running save, without CheckpointOptions::thread. False if there is none. Not
  /// collective.
  bool step() { return writer_->work().step(); }
  /// Unlocks the directory for other runs. Call it after the last `finish`; nothing can be saved afterwards. Not
  /// collective.
  void release() noexcept { lock_.reset(); }

  [[nodiscard]] const CheckpointOptions& options() const noexcept { return options_; }
  /// Seconds that the training has waited for saves so far.
  [[nodiscard]] double exposed_seconds() const noexcept { return exposed_seconds_; }
  /// Duration in seconds of the slowest save so far, from its start to its end; 0 on ranks other than 0.
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
  Storage& storage_;
  std::optional<FolderLock> lock_;  ///< rank 0's
  std::optional<Snapshot> snapshot_;
  std::vector<State> counters_;
  std::vector<std::string> averaged_;  ///< names
  CheckpointManifest manifest_;        ///< of the running save, or of the last one
  struct {
    std::uint64_t step = 0;
    double saved = 0;       ///< when
  } publication_;           ///< checkpoint that rank 0's thread publishes, or published last
  bool under_way_ = false;  ///< some rank is writing a part; the same on all ranks
  bool due_ = false;        ///< the same on all ranks
  bool failed_ = false;     ///< the last save failed
  double last_save_ = 0;
  double exposed_seconds_ = 0, slowest_seconds_ = 0;
  std::uint64_t written_ = 0;
  std::unique_ptr<CheckpointWriter> writer_;  ///< declared after the members that it reads
  std::unique_ptr<BackgroundThread> thread_;  ///< null without CheckpointOptions::thread
};

}  // namespace ronda
