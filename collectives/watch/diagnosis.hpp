#pragma once
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ronda/collectives/watch/record_view.hpp>

namespace ronda {

/// What is known of a rank when a job stands still.
struct RankReport {
  enum class Answer : std::uint8_t {
    yes,      ///< its process lives
    stopped,  ///< its process is there, and shows no sign of life
    dead,     ///< its process is gone
    none,     ///< nothing is heard from it
  };
  int rank = 0;
  std::string host;
  Answer answer = Answer::none;
  std::optional<RankState> state;  ///< as far as it is known
};

/// Where ranks do different things in the same place of their order.
struct Divergence {
  std::uint64_t group = 0, number = 0;
  std::vector<std::pair<int, Record>> records;  ///< by rank
  std::vector<int> odd;                         ///< those that do not as most do
};
/// The first one, as far back as records go. Takes n log n comparisons of n records.
/// @param ranks     by rank
/// @param compared  counts them, where it is not null
[[nodiscard]] std::optional<Divergence> first_divergence(std::span<const RankReport> ranks,
                                                         std::size_t* compared = nullptr);

[[nodiscard]] std::string text_of(const Divergence& divergence, std::span<const RankReport> ranks);

/// Why a job stands still.
struct Diagnosis {
  std::vector<int> late;   ///< who is waited for
  bool excused = false;    ///< all of them are at something that takes long, and may
  std::string collective;  ///< that stands still
  std::string text;        ///< all of it, for people
};
/// @param ranks  by rank; at least one answers and waits
[[nodiscard]] Diagnosis diagnose(std::span<const RankReport> ranks);

/// `bucket 3 by ring of step 57`
[[nodiscard]] std::string text_of(const Record& record);
/// `allreduce of 512 float32, sum`
[[nodiscard]] std::string contents_of(const Record& record);
/// `ranks 0, 1 and 4`, `ranks 0, 1, 2, 3 and 12 more`
[[nodiscard]] std::string ranks_text(std::span<const int> ranks);

}  // namespace ronda
