#pragma once
#include <cstdint>
#include <string>

namespace ronda {

/// A number for each direction of an image. One number stands for both: 3 is {3, 3}.
struct HeightWidth {
  std::int64_t height, width;

  constexpr HeightWidth(std::int64_t both) noexcept : height(both), width(both) {}
  constexpr HeightWidth(std::int64_t of_height, std::int64_t of_width) noexcept : height(of_height), width(of_width) {}
  bool operator==(const HeightWidth&) const = default;

  [[nodiscard]] constexpr std::int64_t area() const noexcept { return height * width; }
  [[nodiscard]] constexpr bool is_square() const noexcept { return height == width; }
  /// `3`, or `1x7`.
  [[nodiscard]] std::string text() const {
    return std::to_string(height) + (is_square() ? "" : "x" + std::to_string(width));
  }
};

}  // namespace ronda
