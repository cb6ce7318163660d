#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include <ronda/collectives/phase.hpp>
#include <ronda/collectives/reduce_op.hpp>
#include <ronda/core/dtype.hpp>

namespace ronda {

// What a rank leaves for others to read, while it runs and when it is dead: a file that is mapped into memory, so that
// writing to it costs a step no system call and what was written survives the process. A head, then a ring of the last
// collectives. Everything that changes is a 64-bit word that is written whole. A reader of another version says so
// instead of guessing; whatever changes the meaning of a byte raises the version.

inline constexpr std::array<char, 8> record_magic{'R', 'O', 'N', 'D', 'A', 'R', 'E', 'C'};
inline constexpr std::uint32_t record_version = 2;
inline constexpr std::uint32_t record_ring = 1024;  ///< collectives that are kept

/// What ranks do together.
enum class Kind : std::uint8_t {
  none,
  allreduce,
  broadcast,
  reduce,
  reduce_scatter,
  allgather,
  gather,
  scatter,
  alltoall,
  send,
  receive,
  mpi,     ///< calls of MPI that all ranks of a group make at the same place: a barrier, planning, starting, ending
  replay,  ///< of what a device has recorded, collectives inside
};
[[nodiscard]] std::string_view name_of(Kind kind) noexcept;

enum class Outcome : std::uint8_t { started, done, failed };

/// A text in a fixed place, by words; cut off where it is too long.
template <std::size_t length>
struct FixedText {
  std::array<std::uint64_t, length / sizeof(std::uint64_t)> words{};

  FixedText() = default;
  FixedText(std::string_view text) { text.copy(reinterpret_cast<char*>(words.data()), length - 1); }
  [[nodiscard]] std::string_view view() const noexcept {
    const char* begin = reinterpret_cast<const char*>(words.data());
    return {begin, static_cast<std::size_t>(std::find(begin, begin + length, '\0') - begin)};
  }
  bool operator==(const FixedText&) const = default;
};

/// One run of a collective.
struct alignas(64) Record {
  std::uint64_t index = 0;               ///< 1 and up, of this rank's records; written last. 0: being written
  std::uint64_t number = 0;              ///< in its group, from 1, alike on all its ranks; 0: of two ranks alone
  std::uint64_t group = 0;               ///< 0: all ranks
  std::uint64_t step = 0;                ///< of the training; 0: none
  std::uint64_t started = 0, ended = 0;  ///< ticks; 0: not looked at, or not yet
  std::uint64_t what = 0;                ///< kind, type, operation, root, outcome: a byte each, two for the root
  std::uint64_t count = 0;
  FixedText<24> algorithm;
  FixedText<40> label;

  [[nodiscard]] Kind kind() const noexcept { return static_cast<Kind>(what & 0xff); }
  [[nodiscard]] DType dtype() const noexcept { return static_cast<DType>(what >> 8 & 0xff); }
  [[nodiscard]] ReduceOp op() const noexcept { return static_cast<ReduceOp>(what >> 16 & 0xff); }
  [[nodiscard]] Outcome outcome() const noexcept { return static_cast<Outcome>(what >> 24 & 0xff); }
  [[nodiscard]] int root() const noexcept { return static_cast<std::int16_t>(what >> 32 & 0xffff); }

  /// False for bytes that no rank has written.
  [[nodiscard]] bool has_meaning() const noexcept {
    return kind() != Kind::none && kind() <= Kind::replay && dtype() <= DType::int64 && op() <= last_reduce_op &&
           outcome() <= Outcome::failed;
  }

  /// All that is equal on ranks that do the same here.
  [[nodiscard]] auto identity() const noexcept {
    constexpr std::uint64_t without_outcome = ~(std::uint64_t{0xff} << 24);
    return std::tuple(what & without_outcome, count, label.words);
  }
  /// Do two ranks do the same here?
  [[nodiscard]] bool same_as(const Record& other) const noexcept { return identity() == other.identity(); }
};
static_assert(sizeof(Record) == 128);

/// What is the same in all runs of a collective.
struct Description {
  Description() = default;
  /// @param root   or the other rank of a send and a receive; -1: none
  /// @param count  elements, of all tensors
  /// @param brief  takes so little time that looking at the clock would show: that is done now and then
  Description(Kind kind, std::string_view name, std::string_view algorithm = {}, std::uint64_t count = 0,
              DType dtype = DType::uint8, ReduceOp op = ReduceOp::sum, int root = -1, bool brief_one = false)
      : label(name), brief(brief_one) {
    run.what = static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(dtype) << 8 |
               static_cast<std::uint64_t>(op) << 16 |
               static_cast<std::uint64_t>(static_cast<std::uint16_t>(root)) << 32;
    run.count = count;
    run.algorithm = algorithm;
    run.label = name;
  }

  Record run;         ///< what each begins as
  std::string label;  ///< whole
  bool brief = false;
  bool idles = false;  ///< see AllreduceSpec
};

/// The same moment on the clocks that a rank has.
struct ClockReading {
  std::uint64_t ticks = 0;        ///< what records are stamped with
  std::uint64_t nanoseconds = 0;  ///< of the world's clock
};

struct RecordHead {
  // Written once.
  std::array<char, 8> magic = record_magic;
  std::uint32_t version = record_version;
  std::uint32_t records = record_ring;
  std::int32_t rank = 0, size = 1;
  std::int64_t process = 0;
  std::uint64_t launch = 0;  ///< a hash of what the launcher calls this job on this host
  FixedText<64> host;
  ClockReading first;
  std::uint64_t wall_nanoseconds = 0;  ///< since 1970, at `first`

  // Written when the ranks have met.
  alignas(64) std::uint64_t job = 0;  ///< a number that the ranks of one job share; 0: they had not met
  std::uint64_t met_ticks = 0;        ///< of the same moment on all ranks, but for what a barrier takes

  // Written by who does the work.
  alignas(64) std::uint64_t recorded = 0;  ///< records so far
  std::uint64_t step = 0;
  std::uint64_t moves = 0;           ///< changes whenever something moves on
  std::uint64_t still = 0;           ///< 1: collectives are in flight, and wait for others
  std::uint64_t inside_mpi = 0;      ///< 1: in a call that may wait for others
  std::uint64_t alive = 0;           ///< ticks, now and then while it stands still
  std::uint64_t activity = 0;        ///< an Activity
  std::uint64_t activity_since = 0;  ///< ticks
  std::uint64_t activity_limit = 0;  ///< milliseconds that others wait for it; 0: as long as for anything

  /// Whom it waits for, where that is known, told when it was asked for.
  alignas(64) std::uint64_t missing_count = 0;
  std::array<std::uint64_t, 7> missing{};

  // Written by the watchdog.
  alignas(64) ClockReading last;  ///< its latest look at the clock
  std::uint64_t alarmed = 0;      ///< ticks at which this rank was found to stand still too long; 0: it does not
  std::uint64_t over = 0;         ///< 1: it has said why, and all ranks end
  std::uint64_t told_over = 0;    ///< 1: another rank has, which wrote this
  std::uint64_t asked = 0;  ///< 1: a rank of another host stands still, and wants to know whom each rank waits for

  // Written once. Records of earlier programs of this version have zeros here.
  alignas(64) FixedText<128> program;  ///< its name and arguments
};
static_assert(sizeof(RecordHead) <= 4096);

/// All of a rank's file.
struct RecordFile {
  RecordHead head;
  alignas(4096) std::array<Record, record_ring> ring;
};
static_assert(sizeof(RecordFile) == 4096 + record_ring * sizeof(Record));

}  // namespace ronda
