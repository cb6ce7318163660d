#pragma once
#include <array>
#include <cstdint>
#include <type_traits>

// A tile of a product's c, by two levels of Strassen's algorithm (strassen.hpp): its factors packed, 48 rows of a and
// 128 columns of b. Seven *blocks*, the outer level's products, are each made of seven products of the inner level.
namespace ronda::onednn::strassen {

inline constexpr std::int64_t lanes = 16;                             ///< floats of a vector, and of a line of a cache
inline constexpr std::int64_t kernel_rows = 12, kernel_columns = 32;  ///< what registers hold
inline constexpr std::int64_t block_rows = 2 * kernel_rows, block_columns = 2 * kernel_columns;
inline constexpr std::int64_t tile_rows = 2 * block_rows, tile_columns = 2 * block_columns;
inline constexpr std::int64_t blocks = 7, products = 7 * blocks;

/// Steps of the depth of which the first two are a pair, where steps are paired. What is left at the end has no pairs.
inline constexpr std::int64_t paired_group = 3;

/// Floats from one factor of a width to the next: its own, and `pair_sums` of it.
[[nodiscard]] constexpr std::int64_t factor_floats(std::int64_t depth, std::int64_t width) noexcept {
  return depth * width + (width + lanes - 1) / lanes * lanes;
}
/// Σ x1 · x2 over a factor's pairs of steps, for each line; in use where steps are paired.
template <class Number>
[[nodiscard]] Number* pair_sums(Number* factor, std::int64_t depth, std::int64_t width) {
  return factor + depth * width;
}
/// What a strip's sums are to be multiplied with, since its factors are scaled: behind all factors of a strip.
template <class Number>
[[nodiscard]] Number& unscale(Number* factors, std::int64_t depth, std::int64_t width) {
  return factors[products * factor_floats(depth, width)];
}
/// Whether a strip's steps may be paired with another's; 1 or 0, behind `unscale`.
template <class Number>
[[nodiscard]] Number& balanced(Number* factors, std::int64_t depth, std::int64_t width) {
  return factors[products * factor_floats(depth, width) + 1];
}
[[nodiscard]] constexpr std::int64_t strip_floats(std::int64_t depth, std::int64_t width) noexcept {
  return products * factor_floats(depth, width) + lanes;
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
  bool paired;  ///< steps of the depth (strassen.hpp): then both are balanced
};

/// What blocks of a tile leave for later ones, (24, 64) each.
struct Partial {
  alignas(64) std::array<float, block_rows * block_columns> p1, u2, u3;
};

/// Where a tile begins, and where it goes. Both may be the same memory.
struct Destination {
  Rows<const float> start;
  Rows<float> c;
  float unscale = 1;  ///< what products are multiplied with
};

/// One of a tile's blocks, 0 to 6. They come in this order.
/// @param rows, columns  of c from the tile's first on: so many are there
void multiply_block(std::int64_t block, const Factors& factors, const Destination& to, std::int64_t rows,
                    std::int64_t columns, Partial& partial, Ahead& ahead);

/// What a tile needs of a product's factor: lines (rows of a or columns of b) from a piece of the depth on. An element
/// (i, k) lies at first[i · line + k · step]; k goes along the depth. What is not there counts as zeros.
struct Side {
  const float* first;
  std::int64_t line, step;    ///< one of them is 1
  std::int64_t lines, steps;  ///< so many are there
};

/// The factors of 49 products, made of 4 x 4 parts of 48 rows of a, (depth, 12) each and one after another at
/// `factor_floats`: first the outer level's sums, then the inner level's sums of these.
/// @param depth    of each part, a quarter of the piece: a multiple of 4
/// @param paired   whether steps are paired (strassen.hpp): then a balanced strip is scaled, and its `pair_sums` made
/// @param factors  the caller's, strip_floats(depth, 12) floats, apart from a's memory
void pack_rows(const Side& a, std::int64_t depth, bool paired, float* factors);
/// The same of 128 columns of b, (depth, 32) each.
void pack_columns(const Side& b, std::int64_t depth, bool paired, float* factors);

}  // namespace ronda::onednn::strassen
