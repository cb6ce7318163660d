#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <ronda/runtime/io/file_lock.hpp>

namespace ronda {

/// Keeps a folder of checkpoints for one run, as long as this object lives: two at a time would remove each other's
/// checkpoints in the making. For rank 0.
class FolderLock {
 public:
  /// Waits for a holder that may be about to end, or to be given up by the file server: ten seconds for one on this
  /// host, a hundred for one on another; or `patience` seconds. `tell` hears of it.
  /// Throws InputError, with the holder's host, process and job, where it is still there then.
  FolderLock(const std::filesystem::path& folder, std::optional<double> patience,
             const std::function<void(const std::string&)>& tell);

  /// Takes the lock again where the folder was removed, and is made anew. Throws InputError where another run has it
  /// now, or it cannot be made; the next call tries again.
  void renew();

  /// The longest that the constructor takes, in seconds.
  static constexpr double longest = 100;

 private:
  std::filesystem::path folder_;
  std::optional<FileLock> lock_;  ///< nothing: another run has it since
};

}  // namespace ronda
