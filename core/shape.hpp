#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace ronda {

/// Extents of a tensor, outermost first; activations are (N, H, W, C) or (N, features), weights as PyTorch names them:
/// (out, in) and (out, in, H, W). At most `capacity` axes. A value; allocates nothing.
class Shape {
 public:
  static constexpr int capacity = 6;
  static constexpr std::int64_t most_elements = std::int64_t{1} << 59;  ///< so that the size in bytes fits for any type

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  /// Throws LogicError for more than `capacity` axes or a negative extent.
  explicit Shape(std::span<const std::int64_t> extents);

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] std::int64_t operator[](int axis) const noexcept { return extents_[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] std::int64_t& operator[](int axis) noexcept { return extents_[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] const std::int64_t* begin() const noexcept { return extents_.data(); }
  [[nodiscard]] const std::int64_t* end() const noexcept { return extents_.data() + rank_; }

  /// Number of elements; 1 for a scalar (rank 0).
  [[nodiscard]] std::int64_t count() const noexcept;
  /// The same axes without the outermost: the shape of one sample of a batch.
  [[nodiscard]] Shape without_batch() const;
  /// `(64, 28, 28, 1)`.
  [[nodiscard]] std::string text() const;

  bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, capacity> extents_{};
  int rank_ = 0;
};

}  // namespace ronda
