#include <ronda/core/error.hpp>
#include <ronda/core/process.hpp>
#include <ronda/runtime/checkpoint/folder_lock.hpp>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>

namespace ronda {
namespace {

std::string this_host() { return "host " + host_name() + ","; }

/// As it stands in the file and in messages.
std::string this_run() {
  const char* job = std::getenv("SLURM_JOB_ID");
  return this_host() + " process " + std::to_string(::getpid()) + (job == nullptr ? "" : std::string(", job ") + job);
}

InputError is_others(const std::filesystem::path& folder, const std::string& holder) {
  return InputError("the folder of checkpoints " + folder.string() + " is another run's (" +
                    (holder.empty() ? "nobody says whose" : holder) +
                    "): end that run, or give this one a folder of its own");
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder, std::optional<double> patience,
                       const std::function<void(const std::string&)>& tell, const Clock& clock, Storage& storage)
    : folder_(folder), storage_(storage), lock_(storage.open_lock(folder / ".lock")) {
  constexpr double on_this_host = 10;
  const double begin = clock.now();
  for (bool told = false;; std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
    const auto outcome = lock_->take(this_run());
    if (outcome == FileLock::Outcome::taken) return;
    if (outcome == FileLock::Outcome::unknown) {
      tell("the file system of " + folder.string() + " has no locks: see to it that no other run saves there");
      return;
    }
    const std::string holder = lock_->holder();
    const double limit = patience.value_or(holder.starts_with(this_host()) ? on_this_host : longest);
    if (clock.now() - begin >= limit) throw is_others(folder, holder);
    if (!told) tell("waiting for another run to let go of " + folder.string() + " (" + holder + ")");
    told = true;
  }
}

void FolderLock::renew() {
  if (lock_ != nullptr && lock_->in_place()) return;
  if (const std::error_code error = storage_.make_folder(folder_))
    throw InputError("cannot create the folder " + folder_.string() + ": " + error.message());
  lock_ = storage_.open_lock(folder_ / ".lock");
  if (lock_->take(this_run()) != FileLock::Outcome::busy) return;
  const std::string holder = lock_->holder();
  lock_.reset();
  throw is_others(folder_, holder);
}

}  // namespace ronda
