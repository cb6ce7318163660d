#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ronda {

/// What a stage of a pipeline has cost a rank so far, the mean over the ranks that have it.
struct StageCosts {
  std::string begins;            ///< the operation that it begins with
  std::uint64_t parameters = 0;  ///< elements, without padding
  std::uint64_t memory = 0;      ///< bytes a rank, as planned
  double computing_seconds = 0;  ///< forward and backward
  double waiting_seconds = 0;    ///< for other stages, and for the sums over the ranks
  double predicted_bubble = 0;   ///< see ronda::predicted_bubble

  /// Share of the time in which a rank has nothing to compute; not a number before the first step.
  [[nodiscard]] double bubble() const noexcept { return waiting_seconds / (computing_seconds + waiting_seconds); }
};

/// The share of waiting of S equal stages and M micro-batches, where a forward and each half of a backward take as
/// long: (S-1)/(3M+S-1) with M from S on. With fewer there is less to do while the others compute.
[[nodiscard]] double predicted_bubble(std::size_t stages, std::size_t micro_batches) noexcept;

/// A line a stage, under a line of titles; none where there are no stages.
[[nodiscard]] std::vector<std::string> stage_table(const std::vector<StageCosts>& stages);

}  // namespace ronda
