#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <ronda/runtime/checkpoint/background.hpp>
#include <ronda/runtime/checkpoint/faults.hpp>
#include <ronda/runtime/checkpoint/folder_lock.hpp>
#include <ronda/runtime/checkpoint/snapshot.hpp>
#include <ronda/runtime/io/checkpoint_manifest.hpp>

namespace ronda {

/// Writes one rank's parts of checkpoints beside the training, and on rank 0 publishes the parts of all ranks. Does not
/// communicate: its caller agrees with the other ranks. Call all functions from one thread. The work is done by
/// `work().step()`, called by a BackgroundThread; destroy that first.
class CheckpointWriter {
 public:
  /// State of an operation; if `failed`, `failure()` has the reason.
  enum class Outcome : std::uint8_t { none, running, done, failed };

  /// @param directory  folder of the checkpoints
  /// @param keep       number of checkpoints that rank 0 keeps, at least 1
  /// @param token      of this run, the same on all ranks: two runs never write to one folder
  /// @param lock       rank 0's lock of the directory, which may be removed and made anew; null: no lock. Outlives this
  ///                   object
  /// @param storage    outlives this object
  CheckpointWriter(std::filesystem::path directory, std::size_t keep, std::string token, int rank, Faults faults,
                   FolderLock* lock = nullptr, Storage& storage = file_system());

  /// What is submitted by the functions below, and not done yet.
  [[nodiscard]] Background& work() noexcept { return work_; }

  /// Writes the contents of `snapshot`, which must not change until part() is no longer `running`.
  void write_part(const Snapshot& snapshot, std::uint64_t step);
  [[nodiscard]] Outcome part() const noexcept { return part_.outcome.load(std::memory_order_acquire); }
  [[nodiscard]] const std::string& part_failure() const noexcept { return part_.failure; }
  /// True if the part failed because the disk is full.
  [[nodiscard]] bool part_lacks_room() const noexcept { return part_.lacks_room; }
  /// Resets the part's outcome once all ranks have it; the next part may then be written.
  void forget_part() noexcept { part_.outcome.store(Outcome::none, std::memory_order_relaxed); }

  /// Call after parts of `step` that the disk had no room for. Rank 0 removes these parts and the oldest checkpoint,
  /// and then keeps only as many checkpoints as are left. Other ranks do nothing. The outcome is `part()`.
  void make_room(std::uint64_t step);

  /// On rank 0, when all parts are on disk: completes the manifest with them, renames the checkpoint to its final name,
  /// and keeps the newest `keep()` checkpoints. Runs after earlier publications. Removes the oldest checkpoints, one by
  /// one, if the disk has no room for the manifest.
  void publish(CheckpointManifest manifest);
  [[nodiscard]] Outcome publication() const noexcept { return publication_.outcome.load(std::memory_order_acquire); }
  [[nodiscard]] const std::string& publication_failure() const noexcept { return publication_.failure; }
  /// Checkpoints of later steps that the last publication set aside: the training continued from an earlier one, or
  /// counts its steps differently. The newest checkpoint is then the last published one.
  [[nodiscard]] const std::vector<std::filesystem::path>& set_aside() const noexcept { return set_aside_; }
  /// Checkpoints that the last publication, or make_room, removed for lack of room.
  [[nodiscard]] const std::vector<std::filesystem::path>& removed() const noexcept { return removed_; }
  /// Number of checkpoints to keep; lower than requested after a removal for lack of room.
  [[nodiscard]] std::size_t keep() const noexcept { return keep_; }
  void forget_publication() noexcept { publication_.outcome.store(Outcome::none, std::memory_order_relaxed); }

  /// On rank 0: removes the parts of `step`.
  void discard(std::uint64_t step);

 private:
  struct Work {
    std::atomic<Outcome> outcome{Outcome::none};
    std::string failure;      ///< set before `outcome`
    bool lacks_room = false;  ///< likewise
  };
  template <class Body>
  void start(Work& work, Body body);
  [[nodiscard]] std::filesystem::path partial(std::uint64_t step) const;
  void write(const Snapshot& snapshot, std::uint64_t step);
  void complete(CheckpointManifest& manifest);
  void remove_record(const std::filesystem::path& record);
  void write_with_room(const CheckpointManifest& manifest);
  [[nodiscard]] bool remove_one();

  std::filesystem::path directory_;
  std::size_t keep_;  ///< set before an outcome
  std::string token_;
  int rank_;
  Faults faults_;
  FolderLock* lock_;
  Storage& storage_;
  Work part_, publication_;
  std::vector<std::filesystem::path> set_aside_;  ///< set before the outcome of a publication
  std::vector<std::filesystem::path> removed_;    ///< set before the outcome of a publication or of make_room
  Background work_;
};

}  // namespace ronda
