#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <ronda/core/tensor.hpp>

namespace ronda {

/// What an operation tells the other ranks that have a part of it, in a pass: sums of so many numbers, or rows that are
/// gathered.
struct PartMessages {
  std::size_t sums = 0;                  ///< numbers that are added up at once; 0: none
  TensorDesc summed = {};                ///< what they are, in one layout on all ranks
  std::size_t rows = 0;                  ///< that are gathered …
  std::vector<std::size_t> widths = {};  ///< … of the parts' numbers, by part; empty: none
  [[nodiscard]] bool empty() const noexcept { return sums == 0 && widths.empty(); }
  bool operator==(const PartMessages&) const = default;
};

/// What ranks that compute one model together, each a part of its operations, tell each other in the middle of a pass.
/// A strategy has one; a program of its own has none, and its parts are all there is.
///
/// Functions are collective over these ranks, in the order of the calling thread. They throw LogicError for what no
/// operation has planned (OperationPlan::parts), CommunicationError where a rank does not come.
class PartExchange {
 public:
  virtual ~PartExchange() = default;
  /// `numbers` become the sums over the parts, the same bits on all.
  virtual void add_up(std::span<float> numbers) = 0;
  /// Each row of `all` becomes the parts' rows of `mine` side by side, by part.
  /// @param widths  of the parts' rows; `mine` has this rank's
  virtual void gather(std::span<const float> mine, std::span<float> all, std::span<const std::size_t> widths) = 0;
};

}  // namespace ronda
