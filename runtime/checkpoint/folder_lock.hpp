#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <ronda/core/clock.hpp>
#include <ronda/runtime/io/file_lock.hpp>
#include <ronda/runtime/io/storage.hpp>

namespace ronda {

/// Locks a folder of checkpoints for one run, for the lifetime of this object: two runs at a time would remove each
/// other's unfinished checkpoints. For rank 0.
class FolderLock {
 public:
  /// Waits for another holder, which may be about to end, or whose lock the file server may be about to release: ten
  /// seconds for one on this host, a hundred for one on another; or `patience` seconds. Calls `tell` to report the
  /// wait. Throws InputError, with the holder's host, process and job, if the folder is still locked then.
  FolderLock(const std::filesystem::path& folder, std::optional<double> patience,
             const std::function<void(const std::string&)>& tell, const Clock& clock = steady_clock(),
             Storage& storage = file_system());

  /// Locks the folder again if it was removed and made anew. Throws InputError if another run holds the lock now, or it
  /// cannot be made; the next call tries again.
  void renew();

  /// Longest time that the constructor waits without `patience`, in seconds.
  static constexpr double longest = 100;

 private:
  std::filesystem::path folder_;
  Storage& storage_;
  std::unique_ptr<FileLock> lock_;  ///< null: another run has locked it since
};

}  // namespace ronda
