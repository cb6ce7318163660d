#pragma once
#include <memory>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>

namespace ronda {

/// Adds up a number of each rank in the order of ranks, by whatever algorithm: each sum of the allreduce has one number
/// that is not zero.
class SumInOrder {
 public:
  /// Collective.
  SumInOrder(Communicator& ranks, const std::string& label);
  /// Allocates nothing. Collective.
  [[nodiscard]] double sum(double mine);
  /// Seconds that it has waited so far.
  [[nodiscard]] double exposed_seconds() const noexcept { return exposed_seconds_; }

 private:
  std::size_t rank_;
  std::vector<double> numbers_;  ///< by rank
  std::unique_ptr<Collective> all_;
  double exposed_seconds_ = 0;
};

}  // namespace ronda
