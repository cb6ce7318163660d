#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/layers/rank_sums.hpp>

namespace ronda {

/// A strategy's RankSums: an allreduce of float64 numbers for each count that its operations need, planned beforehand,
/// so that a pass allocates nothing.
class PlannedRankSums final : public RankSums {
 public:
  /// @param counts  each once; the same on all ranks. Collective
  PlannedRankSums(Communicator& communicator, std::span<const std::size_t> counts);
  void add_up(std::span<double> numbers) override;

 private:
  struct Planned {
    std::vector<double> numbers;
    std::unique_ptr<Collective> sum;  ///< of these numbers
  };
  std::vector<Planned> planned_;
};

}  // namespace ronda
