#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include <ronda/collectives/watch/record.hpp>

namespace ronda {

/// What a rank is at, as others are told: plain numbers, which go over a network between machines of one kind.
struct RankStatus {
  static constexpr std::size_t most_missing = 7;

  std::int32_t rank = 0;
  bool still = false;                  ///< its collectives in flight wait for others
  bool inside_mpi = false;             ///< it is in a call that may wait for others
  bool alarmed = false;                ///< it has been so for longer than the timeout
  bool stopped = false, dead = false;  ///< its process, as another rank of its host says
  Activity activity = Activity::running;
  float activity_seconds = 0, activity_limit = 0;
  std::uint64_t step = 0, moves = 0;
  std::uint32_t missing_count = 0;
  std::array<std::int32_t, most_missing> missing{};  ///< whom it waits for, where that is known

  [[nodiscard]] bool waits() const noexcept { return still || inside_mpi; }
};

struct RankState {
  RankStatus status;
  std::vector<Record> trail;  ///< its latest collectives, oldest first

  /// The oldest that has begun and not ended; null where there is none.
  [[nodiscard]] const Record* pending() const noexcept;
};

/// What a number in a record, or from another host, says, where it may be any.
[[nodiscard]] Activity activity_of(std::uint64_t number) noexcept;
[[nodiscard]] float plausible_seconds(double seconds) noexcept;

/// Reads the state of a rank from its record, which may be written to meanwhile.
/// @param most  records
[[nodiscard]] RankState state_of(const RecordFile& file, std::size_t most);

/// From ticks to nanoseconds of the clock that the record runs with.
[[nodiscard]] std::uint64_t nanoseconds_of(std::uint64_t ticks, const RecordHead& head) noexcept;

/// The record of another rank on this host. It is read and never mapped: whoever may write to it may also cut it off,
/// and then a mapping would end the process that looks at it.
class RecordView {
 public:
  /// Null where there is none (yet), or not one that this version can read.
  [[nodiscard]] static std::unique_ptr<RecordView> open(const std::filesystem::path& path);
  RecordView(const RecordView&) = delete;
  ~RecordView();

  /// Reads the head again. False where the file is no longer a record; then what was read before stays.
  bool refresh() noexcept;
  [[nodiscard]] const RecordHead& head() const noexcept { return head_; }
  /// What the rank is at, and its latest records. Nothing where the file is no longer a record.
  [[nodiscard]] std::optional<RankState> state(std::size_t most);
  /// True where the process that wrote it is gone.
  [[nodiscard]] bool abandoned() const noexcept;

 private:
  explicit RecordView(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
  RecordHead head_;
};

/// All of a record while its rank may write to it: what is written at that moment is left out. False where the file is
/// shorter.
[[nodiscard]] bool read_whole(int descriptor, RecordFile& file) noexcept;
/// Opens a plain file for reading; never waits, as for the other end of a pipe. -1 where it is none.
[[nodiscard]] int open_plain(const std::filesystem::path& path, int flags = 0) noexcept;

}  // namespace ronda
