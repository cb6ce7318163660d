#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <ronda/collectives/host/node/barrier.hpp>
#include <ronda/collectives/host/node/touch_pages.hpp>
#include <ronda/core/dtype.hpp>
#include <ronda/core/parallel.hpp>

namespace ronda {

/// The same tensor of each rank of a node, all in reach of all, and what the ranks need to work on them together.
struct NodeCopies {
  static constexpr std::size_t lines_a_rank = 2;  ///< OneShot takes them in turn, the others the first

  std::vector<std::byte*> data;  ///< by rank on the node
  int rank = 0;                  ///< this rank's place among them
  std::vector<int> ranks;        ///< what they are called in the world
  std::size_t count = 0;
  DType dtype = DType::float32;
  std::vector<BarrierLine*> lines;     ///< likewise: the first of `lines_a_rank`
  std::shared_ptr<const void> keeper;  ///< keeps all of it mapped

  /// Part `index` of `parts`; cut at cache lines, so that no two ranks write to one.
  [[nodiscard]] Range part(std::size_t index, std::size_t parts) const noexcept {
    const std::size_t line = 64 / size_of(dtype);
    const Range lines_of_part = part_of((count + line - 1) / line, index, parts);
    return {std::min(lines_of_part.begin * line, count), std::min(lines_of_part.end * line, count)};
  }
  /// What a rank is going to use: these elements of all copies.
  void touch(Range elements) const noexcept {
    for (const std::byte* copy : data)
      touch_pages({copy + elements.begin * size_of(dtype), elements.size() * size_of(dtype)});
  }
};

}  // namespace ronda
