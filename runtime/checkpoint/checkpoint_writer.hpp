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

/// Writes one rank's parts of checkpoints on a thread of its own, and on rank 0 publishes what all ranks have written.
/// Knows no other rank: whoever uses it agrees with them. The same thread calls everything here.
class CheckpointWriter {
 public:
  /// How a piece of work stands; `failed` has a text in `failure()`.
  enum class Outcome : std::uint8_t { none, running, done, failed };

  /// @param directory  where checkpoints lie
  /// @param keep       of which so many stay, 1 or more; rank 0's
  /// @param token      of this run, the same on all ranks: two runs never write to one folder
  /// @param lock       rank 0's, of the directory, which may be removed and made anew; null: nobody keeps it. Outlives
  ///                   this object
  CheckpointWriter(std::filesystem::path directory, std::size_t keep, std::string token, int rank, Faults faults,
                   FolderLock* lock = nullptr);

  /// Writes what `snapshot` holds, which stays as it is until part() is no longer `running`.
  void write_part(const Snapshot& snapshot, std::uint64_t step);
  [[nodiscard]] Outcome part() const noexcept { return part_.outcome.load(std::memory_order_acquire); }
  [[nodiscard]] const std::string& part_failure() const noexcept { return part_.failure; }
  /// It failed because the disk is full.
  [[nodiscard]] bool part_lacks_room() const noexcept { return part_.lacks_room; }
  /// All ranks know how the part came out; the next may be written.
  void forget_part() noexcept { part_.outcome.store(Outcome::none, std::memory_order_relaxed); }

  /// After parts that the disk had no room for: rank 0 removes what is there of `step`, and the oldest checkpoint, and
  /// from then on keeps no more than are left. The others have nothing to do. The outcome is that of a part.
  void make_room(std::uint64_t step);

  /// Rank 0, when all parts are on disk: completes the manifest with them, gives the checkpoint its name and keeps the
  /// newest. Follows what was published before. Makes room where the disk has none for the manifest.
  void publish(CheckpointManifest manifest);
  [[nodiscard]] Outcome publication() const noexcept { return publication_.outcome.load(std::memory_order_acquire); }
  [[nodiscard]] const std::string& publication_failure() const noexcept { return publication_.failure; }
  /// What publishing has set aside: checkpoints of later steps, of a training that went on from before them, or counts
  /// its steps otherwise. The newest is the one that was published last.
  [[nodiscard]] const std::vector<std::filesystem::path>& set_aside() const noexcept { return set_aside_; }
  /// What the last publication, or make_room, has removed for lack of room, and how many checkpoints are kept since.
  [[nodiscard]] const std::vector<std::filesystem::path>& removed() const noexcept { return removed_; }
  [[nodiscard]] std::size_t keep() const noexcept { return keep_; }
  void forget_publication() noexcept { publication_.outcome.store(Outcome::none, std::memory_order_relaxed); }

  /// Rank 0: the parts of `step` are not wanted.
  void discard(std::uint64_t step);

 private:
  struct Work {
    std::atomic<Outcome> outcome{Outcome::none};
    std::string failure;      ///< set before the outcome says so
    bool lacks_room = false;  ///< likewise
  };
  template <class Body>
  void start(Work& work, Body body);
  [[nodiscard]] std::filesystem::path partial(std::uint64_t step) const;
  void write(const Snapshot& snapshot, std::uint64_t step);
  void complete(CheckpointManifest& manifest);
  void write_with_room(const CheckpointManifest& manifest);
  [[nodiscard]] bool remove_one();

  std::filesystem::path directory_;
  std::size_t keep_;  ///< set before an outcome says so
  std::string token_;
  int rank_;
  Faults faults_;  ///< of the thread
  FolderLock* lock_;
  Work part_, publication_;
  std::vector<std::filesystem::path> set_aside_;  ///< set before the outcome of a publication says so
  std::vector<std::filesystem::path> removed_;    ///< likewise, and that of making room
  Background thread_;                             ///< last: it uses all of the above
};

}  // namespace ronda
