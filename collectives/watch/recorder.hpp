#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/watch/record.hpp>
#include <ronda/collectives/watch/record_guard.hpp>
#include <ronda/core/clock.hpp>

namespace ronda {

/// Where records may be kept when nobody said it, the best first: /dev/shm, which outlives processes, though not the
/// machine, and where temporary files go.
[[nodiscard]] std::vector<std::filesystem::path> record_places();
/// A folder in `place` for the records of this user's job, whose parent belongs to this user and nobody else can write
/// to: `place`/ronda-<user>, or where somebody else has made that, one of a random name, which the user's other
/// processes and later jobs find again. Nothing where there can be none, or others could take it away.
[[nodiscard]] std::optional<std::filesystem::path> record_folder_in(const std::filesystem::path& place);
/// Whether a process still writes to one of the records in `folder`, or it cannot be known.
[[nodiscard]] bool records_in_use(const std::filesystem::path& folder);
/// Removes the records of ended jobs next to `folder`, except the latest few.
void remove_old_records(const std::filesystem::path& folder) noexcept;
/// `folder`/rank-0003.ronda, or rank-0003.`apart`.ronda
[[nodiscard]] std::filesystem::path record_path(const std::filesystem::path& folder, int rank,
                                                std::string_view apart = {});

/// Marks the job as over in a rank's record: that rank's watchdog finds the mark before it ends the job itself. Does
/// nothing if the record is another job's by now.
/// @param job  the number that the ranks share; 0 before they have met
void tell_over(const std::filesystem::path& record, std::uint64_t job) noexcept;

/// Writes down what this rank does, in memory that others can read and that survives it: plain stores, no system call,
/// nothing from the heap. One thread at a time begins collectives, others may end them meanwhile.
class Recorder {
 public:
  /// Makes the file in `folder`, which is made where it is not there.
  /// @param keep   also after a good end
  /// @param apart  keeps the file apart from those of other ranks of this number in the folder
  /// @param clock  the world's, by which the watchdog waits too; outlives this object
  /// Throws InputError where the file cannot be made there, ResourceError where there is no room for it.
  Recorder(const std::filesystem::path& folder, bool keep, int rank, int size, std::string_view apart = {},
           const Clock& clock = steady_clock());
  Recorder(const Recorder&) = delete;
  /// Removes the file, unless it is to be kept.
  ~Recorder();

  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] const RecordFile& file() const noexcept { return *file_; }
  void keep() noexcept { keep_ = true; }
  /// A number that the ranks share; said right after a barrier.
  void met(int rank, int size, std::uint64_t job) noexcept;

  /// A collective starts. What is returned goes to `end`. One that idles, and follows its like, takes its place.
  std::uint64_t begin(const Description& description, std::uint64_t group, std::uint64_t number) noexcept;
  void end(std::uint64_t index, Outcome outcome) noexcept;
  void end_last() noexcept { end(get(file_->head.recorded), Outcome::done); }

  void set_step(std::uint64_t step) noexcept { set(file_->head.step, step); }
  void set_activity(Activity activity, std::uint64_t limit_milliseconds, std::uint64_t since) noexcept;

  // How the engine fares.
  void moved() noexcept {
    set(file_->head.moves, get(file_->head.moves) + 1);
    if (get(file_->head.still) == 0) return;
    set(file_->head.still, 0);
    set(file_->head.missing_count, 0);
  }
  void stands_still() noexcept {
    if (get(file_->head.still) == 0) set(file_->head.still, 1);
  }
  void still_alive() noexcept { set(file_->head.alive, ticks()); }
  void inside_mpi(bool inside) noexcept {
    set(file_->head.moves, get(file_->head.moves) + 1);
    set(file_->head.inside_mpi, inside ? 1 : 0);
    if (inside) set(file_->head.missing_count, 0);  // that was of the last wait
  }
  void waits_for(std::span<const int> ranks) noexcept;

  // The watchdog's.
  void beat() noexcept;
  void set_alarmed(bool alarmed) noexcept { set(file_->head.alarmed, alarmed ? ticks() : 0); }
  void set_over(bool over) noexcept { set(file_->head.over, over ? 1 : 0); }
  void forget_told() noexcept { set(file_->head.told_over, 0); }
  [[nodiscard]] bool told_over() const noexcept { return get(file_->head.told_over) != 0; }
  void set_asked(bool asked) noexcept { set(file_->head.asked, asked ? 1 : 0); }

  /// The cheapest count that runs with the clock.
  [[nodiscard]] std::uint64_t ticks() const noexcept;

  static void set(std::uint64_t& word, std::uint64_t value) noexcept {
    std::atomic_ref(word).store(value, std::memory_order_relaxed);
  }
  [[nodiscard]] static std::uint64_t get(const std::uint64_t& word) noexcept {
    return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_relaxed);
  }

 private:
  void make_file();
  [[nodiscard]] bool is_own_file() const noexcept;
  [[nodiscard]] void* take_memory();
  /// Throws; errno says why.
  template <class Failure>
  [[noreturn]] void refuse(const char* what) const;
  [[nodiscard]] bool idles_again(const Description& description) const noexcept;

  std::filesystem::path folder_, path_;
  const Clock& clock_;
  bool keep_;
  int descriptor_ = -1;  ///< locked as long as this process lives, so that others can tell
  RecordFile* file_ = nullptr;
  std::optional<RecordGuard> guard_;
  bool processor_ticks_;
  std::uint64_t recorded_ = 0;
};

/// A call that may wait for other ranks, from here to the end of its scope, of which the recorder knows. May be null.
class InsideMpi {
 public:
  explicit InsideMpi(Recorder* recorder) noexcept : recorder_(recorder) {
    if (recorder_ != nullptr) recorder_->inside_mpi(true);
  }
  InsideMpi(const InsideMpi&) = delete;
  ~InsideMpi() {
    if (recorder_ != nullptr) recorder_->inside_mpi(false);
  }

 private:
  Recorder* recorder_;
};

/// How a group's collectives are counted, alike on all its ranks.
struct Ledger {
  std::shared_ptr<Recorder> recorder;  ///< null: nothing is written down
  std::uint64_t group = 0;             ///< 0: all ranks
  std::uint64_t number = 0;            ///< collectives so far
  std::vector<int> world_ranks = {};   ///< what the group's ranks are called in the world; empty: as here

  [[nodiscard]] int world_rank(int rank) const noexcept {
    return world_ranks.empty() ? rank : world_ranks[static_cast<std::size_t>(rank)];
  }
  std::uint64_t begin(const Description& description) noexcept {
    const bool of_two = description.run.kind() == Kind::send || description.run.kind() == Kind::receive;
    if (!of_two) ++number;
    return recorder == nullptr ? 0 : recorder->begin(description, group, of_two ? 0 : number);
  }
  void end(std::uint64_t index, Outcome outcome) const noexcept {
    if (recorder != nullptr) recorder->end(index, outcome);
  }
};

/// A call of MPI that all ranks of a group make, in its ledger; failed where it ends by an exception.
class RecordedCall {
 public:
  RecordedCall(Ledger& ledger, std::string_view what) : ledger_(ledger), index_(ledger.begin({Kind::mpi, what})) {}
  RecordedCall(const RecordedCall&) = delete;
  ~RecordedCall() {
    ledger_.end(index_, std::uncaught_exceptions() > exceptions_before_ ? Outcome::failed : Outcome::done);
  }

 private:
  Ledger& ledger_;
  std::uint64_t index_;
  int exceptions_before_ = std::uncaught_exceptions();
};

}  // namespace ronda
