#include <ronda/core/error.hpp>
#include <ronda/core/shape.hpp>

namespace ronda {

Shape::Shape(std::span<const std::int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  if (rank_ > capacity) throw LogicError("a shape has at most 6 axes, " + std::to_string(rank_) + " were given");
  for (int axis = 0; axis < rank_; ++axis) {
    const std::int64_t extent = extents[static_cast<std::size_t>(axis)];
    if (extent < 0) throw LogicError("a shape's extent cannot be negative: " + std::to_string(extent));
    (*this)[axis] = extent;
  }
}

std::int64_t Shape::count() const noexcept {
  std::int64_t product = 1;
  for (std::int64_t extent : *this) product *= extent;
  return product;
}

Shape Shape::without_batch() const {
  if (rank_ == 0) throw LogicError("a scalar has no batch axis");
  return Shape(std::span(begin() + 1, end()));
}

std::string Shape::text() const {
  std::string text = "(";
  for (int axis = 0; axis < rank_; ++axis) text += (axis ? ", " : "") + std::to_string((*this)[axis]);
  return text + ")";
}

}  // namespace ronda
