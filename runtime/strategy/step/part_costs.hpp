#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ronda {

/// Costs of a pipeline stage so far: the mean over the ranks that compute it.
struct StageCosts {
  std::string begins;            ///< name of its first operation
  std::uint64_t parameters = 0;  ///< elements, without padding
  std::uint64_t memory = 0;      ///< bytes per rank, as planned
  double computing_seconds = 0;  ///< forward and backward
  double waiting_seconds = 0;    ///< waiting for other stages, and for the sums over the ranks
  double predicted_bubble = 0;   ///< see ronda::predicted_bubble

  /// Share of the time in which a rank is idle; NaN before the first step.
  [[nodiscard]] double bubble() const noexcept { return waiting_seconds / (computing_seconds + waiting_seconds); }
};

/// Share of waiting for S equal stages and M micro-batches, if a forward and each half of a backward take equally long:
/// (S-1)/(3M+S-1) for M >= S. With fewer micro-batches less work can fill the waiting time.
[[nodiscard]] double predicted_bubble(std::size_t stages, std::size_t micro_batches) noexcept;

/// One line per stage, below a header line; empty if there are no stages.
[[nodiscard]] std::vector<std::string> stage_table(const std::vector<StageCosts>& stages);

/// Costs so far of splitting a model's operations over ranks.
struct SplitCosts {
  std::size_t parts = 0;                 ///< ranks that share one model; 0: no operation is split
  std::vector<std::string> layers = {};  ///< `dense1=columns`
  std::uint64_t parameters = 0;          ///< elements, without padding, of the largest part
  std::uint64_t bytes = 0;               ///< bytes that this rank summed or gathered with the other parts
  double waiting_seconds = 0;            ///< time that this rank spent in these exchanges
};

}  // namespace ronda
