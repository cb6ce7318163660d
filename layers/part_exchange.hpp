#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <ronda/core/tensor.hpp>

namespace ronda {

/// The communication of an operation with the ranks that have its other parts, in a pass: a sum, or a gather of rows.
struct PartMessages {
  std::size_t sums = 0;                  ///< numbers to sum; 0: no sum
  TensorDesc summed = {};                ///< description of the summed tensor; the layout is the same on all ranks
  std::size_t rows = 0;                  ///< number of rows to gather
  std::vector<std::size_t> widths = {};  ///< row width of each part; empty: no gather
  [[nodiscard]] bool empty() const noexcept { return sums == 0 && widths.empty(); }
  bool operator==(const PartMessages&) const = default;
};

/// Communication in the middle of a pass, between ranks that each compute a part of a model's operations. Only programs
/// under a strategy have one; other programs compute all parts themselves.
///
/// All functions are collective over these ranks; calls match in the order of the calling thread. They throw LogicError
/// for a sum or gather that no operation has planned (OperationPlan::parts), CommunicationError if a rank does not take
/// part.
class PartExchange {
 public:
  virtual ~PartExchange() = default;
  /// Replaces `numbers` by the sums over the parts, bitwise equal on all ranks.
  virtual void add_up(std::span<float> numbers) = 0;
  /// Writes to each row of `all` the corresponding rows of `mine` from all parts, one after another.
  /// @param widths  row width of each part; `mine` has the width of this rank's part
  virtual void gather(std::span<const float> mine, std::span<float> all, std::span<const std::size_t> widths) = 0;
};

}  // namespace ronda
