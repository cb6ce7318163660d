#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/shape.hpp>

namespace ronda {

/// The memory order of the elements of a logical shape: an order of the axes, outermost first, then *inner blocks*,
/// which divide an axis into pieces that are stored together (the axis is padded to a whole number of pieces).
///
/// Written as a tag in which a letter is an axis of the logical shape: for activations (N, H, W, C), `abcd` is plain
/// NHWC and `adbc16d` keeps 16 channels together. The empty layout is plain row-major order of any rank. Callers of
/// primitives treat layouts as opaque: they compare them, store tags, and copy (see `reorder`).
class Layout {
 public:
  struct Block {
    int axis;
    std::int64_t size;
    bool operator==(const Block&) const = default;
  };
  static constexpr int max_blocks = 4;

  Layout() = default;
  /// @param order   a permutation of the axes, outermost first
  /// @param blocks  outermost first
  Layout(std::span<const int> order, std::span<const Block> blocks);

  /// The inverse of `tag`. Throws InputError for an invalid tag.
  static Layout parse(std::string_view tag);
  /// "plain", or axes and blocks as letters.
  [[nodiscard]] std::string tag() const;

  [[nodiscard]] bool is_plain() const noexcept { return rank_ == 0; }
  [[nodiscard]] std::span<const Block> blocks() const noexcept {
    return {blocks_.data(), static_cast<std::size_t>(block_count_)};
  }

  /// Extents after padding to whole blocks.
  [[nodiscard]] Shape padded(const Shape& shape) const;

  /// The offset, in elements, of index i along `axis`, for every i; offsets of the axes add up.
  [[nodiscard]] std::vector<std::int64_t> offsets(const Shape& shape, int axis) const;

  /// Strides, in elements, of the outer (blocked) axes, in the order of the logical axes.
  [[nodiscard]] std::array<std::int64_t, Shape::capacity> outer_strides(const Shape& shape) const;

  /// The layout of one entry of axis 0 if the entries are contiguous; otherwise `nullopt`.
  [[nodiscard]] std::optional<Layout> without_outermost() const;

  /// The inverse: contiguous entries of this layout along a new axis 0.
  [[nodiscard]] Layout with_outermost() const;

  /// The layout without `axis`, which has extent 1; the bytes stay in place. Throws LogicError if that axis is blocked.
  [[nodiscard]] Layout without_step(int axis) const;

  /// The inverse: with a new axis `axis` of extent 1, directly outside of the previous axis of that number.
  [[nodiscard]] Layout with_step(int axis) const;

  bool operator==(const Layout&) const = default;

 private:
  std::array<int, Shape::capacity> order_{};
  std::array<Block, max_blocks> blocks_{};
  int rank_ = 0;
  int block_count_ = 0;
};

}  // namespace ronda
