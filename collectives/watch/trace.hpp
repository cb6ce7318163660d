#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/watch/diagnosis.hpp>

namespace ronda {

/// A collective of a rank, in seconds of a clock that all ranks share, but for what their meeting at the start took.
struct Span {
  Record record;
  double begin = 0, end = 0;  ///< end: as far as is known, where it has none
  bool exact = true;          ///< false: put between its neighbours, because nobody looked at the clock
};

/// What a rank has left.
struct RankTrace {
  std::filesystem::path path;
  int rank = 0;
  std::string host;
  std::int64_t process = 0;
  std::string program;      ///< and its arguments; empty where it is not known
  double began = 0;         ///< seconds since 1970
  RankState state;          ///< all records that are kept
  std::vector<Span> spans;  ///< likewise
  double last_life = 0;     ///< its last sign of life, on the same clock
  bool ended = false;       ///< in good order

  /// The oldest collective that has not ended; if all have, the last; null without any.
  [[nodiscard]] const Record* last() const noexcept;
};

/// The records of one job.
struct Trace {
  std::uint64_t job = 0;
  int size = 0;
  std::vector<RankTrace> ranks;    ///< by rank
  std::vector<int> missing;        ///< ranks of which there is no record
  std::vector<std::string> notes;  ///< what was left out, and why
};

/// @param places  files, and folders of them
/// Throws InputError that names the file: missing, damaged, foreign, of another version. One such that was only found
/// in a folder, beside others, is left out, with a note.
[[nodiscard]] Trace read_trace(std::span<const std::filesystem::path> places);

/// How often a rank was the last to come to a collective that all have recorded.
struct Lateness {
  int rank = 0;
  std::size_t times = 0, of = 0;
  double seconds = 0;  ///< behind the first, on average over these
};

struct Explanation {
  std::optional<Divergence> divergence;
  std::vector<int> late;               ///< why it stands, or stood, still
  std::vector<Lateness> last_to_come;  ///< the latest first
  std::string text;                    ///< for people, lines
};
[[nodiscard]] Explanation explain(const Trace& trace);

}  // namespace ronda
