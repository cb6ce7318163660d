#pragma once
#include <cstddef>
#include <vector>

#include <ronda/core/parallel.hpp>

namespace ronda {

/// Where a part of a value goes.
struct PlacedPart {
  Range range;  ///< elements of the value
  int server = 0;
};

/// Spreads values over servers: each part goes to the server that has the fewest bytes, the first of such. All who
/// place the same counts in the same order find the same.
class PartPlacement {
 public:
  PartPlacement(int servers, std::size_t part_bytes)
      : elements_(static_cast<std::size_t>(servers)), part_elements_(part_bytes / sizeof(float)) {}

  /// By the order of `counts`, which are elements of values; the largest are placed first.
  [[nodiscard]] std::vector<std::vector<PlacedPart>> place(const std::vector<std::size_t>& counts);

 private:
  [[nodiscard]] std::vector<PlacedPart> place_one(std::size_t count);

  std::vector<std::size_t> elements_;  ///< by server
  std::size_t part_elements_;
};

}  // namespace ronda
