#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/layers/pass.hpp>

namespace ronda {

/// A strategy's RankSums: one float64 allreduce for each count that its operations need, planned in advance, so that a
/// pass allocates nothing.
class PlannedRankSums final : public RankSums {
 public:
  /// @param counts  each only once; the same on all ranks. Collective
  PlannedRankSums(Communicator& communicator, std::span<const std::size_t> counts);
  void add_up(std::span<double> numbers) override;

 private:
  struct Planned {
    std::vector<double> numbers;
    std::unique_ptr<Collective> sum;  ///< sum of `numbers` over the ranks
  };
  std::vector<Planned> planned_;
};

}  // namespace ronda
