#pragma once
#include <array>
#include <cstdint>
#include <type_traits>

/// A tile of a product's c, by two levels of Strassen's algorithm (strassen.hpp): its factors packed, 48 rows of a and
/// 128 columns of b. Seven *blocks*, the outer level's products, are each made of seven products of the inner level.
namespace ronda::onednn::strassen {

inline constexpr std::int64_t lanes = 16;                             ///< floats of a vector, and of a line of a cache
inline constexpr std::int64_t kernel_rows = 12, kernel_columns = 32;  ///< what registers hold
inline constexpr std::int64_t block_rows = 2 * kernel_rows, block_columns = 2 * kernel_columns;
inline constexpr std::int64_t tile_rows = 2 * block_rows, tile_columns = 2 * block_columns;
inline constexpr std::int64_t blocks = 7, products = 7 * blocks;

/// Floats from one factor of a width to the next: more than its own, lest all factors lie in the same lines of a cache.
[[nodiscard]] constexpr std::int64_t factor_floats(std::int64_t depth, std::int64_t width) noexcept {
  return depth * width + lanes;
}

/// Numbers in rows.
template <class Number>
struct Rows {
  Number* first = nullptr;
  std::int64_t row = 0;  ///< from one row to the next; 0 where all are the same

  [[nodiscard]] Rows at(std::int64_t r, std::int64_t column) const {
    return first == nullptr ? Rows() : Rows{first + r * row + column, row};
  }
  operator Rows<const Number>() const requires(!std::is_const_v<Number>) { return {first, row}; }
};

/// Memory that is read soon, and so is fetched into the second-level cache meanwhile: some lines a product.
struct Ahead {
  const float* from = nullptr;
  std::int64_t row = 0;             ///< from one row to the next
  std::int64_t lines = 0;           ///< of 64 bytes, in a row
  std::int64_t next = 0, last = 0;  ///< of all rows' lines
  std::int64_t burst = 0;           ///< lines at a time: few enough to be on their way at once
};

/// A block's factors (k, 12) and (k, 32), those of seven products one after another, at `factor_floats`.
struct Factors {
  const float *a, *b;
  std::int64_t depth;  ///< even
  /// Fetched into the second-level cache too, 64 bytes for each k of the seven: half of the next block's b. What that
  /// fetches by itself is the other half. It may lie behind all of b, whose memory is not touched so.
  const float* later;
};

/// What blocks of a tile leave for later ones, (24, 64) each.
struct Partial {
  alignas(64) std::array<float, block_rows * block_columns> p1, u2, u3;
};

/// Where a tile begins, and where it goes. Both may be the same memory.
struct Destination {
  Rows<const float> start;
  Rows<float> c;
};

/// One of a tile's blocks, 0 to 6. They come in this order.
/// @param rows, columns  of c from the tile's first on: so many are there
void multiply_block(std::int64_t block, const Factors& factors, const Destination& to, std::int64_t rows,
                    std::int64_t columns, Partial& partial, Ahead& ahead);

}  // namespace ronda::onednn::strassen
