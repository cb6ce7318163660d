#pragma once
#include <bit>

namespace ronda {

/// How algorithms for powers of two take any number of ranks: as many ranks as are beyond the power hand their data to
/// a neighbour, which is a *member* and works for both, and get the result back from it in the end (Thakur,
/// Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005).
///
/// Of the first 2 · beyond ranks the even ones hand over to the odd ones; all others are members of their own.
class Folding {
 public:
  Folding(int rank, int ranks) noexcept : rank_(rank) {
    while (2 * power_ <= ranks) power_ *= 2;
    beyond_ = ranks - power_;
  }

  [[nodiscard]] int power() const noexcept { return power_; }          ///< how many members there are
  [[nodiscard]] bool anybody() const noexcept { return beyond_ > 0; }  ///< whether any rank hands over
  [[nodiscard]] bool is_folded() const noexcept { return rank_ < 2 * beyond_; }
  [[nodiscard]] bool hands_over() const noexcept { return is_folded() && rank_ % 2 == 0; }
  /// Whom this rank is folded with.
  [[nodiscard]] int neighbour() const noexcept { return rank_ % 2 == 0 ? rank_ + 1 : rank_ - 1; }
  /// This rank's number among the members; only where it does not hand over.
  [[nodiscard]] int member() const noexcept { return is_folded() ? rank_ / 2 : rank_ - beyond_; }
  [[nodiscard]] int rank_of(int member) const noexcept { return member < beyond_ ? 2 * member + 1 : member + beyond_; }

  /// Of a number that is rounded in every step, for the rank that this one is folded with, and at the end.
  [[nodiscard]] static int roundings(int ranks) noexcept {
    return static_cast<int>(std::bit_width(static_cast<unsigned>(ranks))) + 1;
  }

 private:
  int rank_, power_ = 1, beyond_ = 0;
};

}  // namespace ronda
