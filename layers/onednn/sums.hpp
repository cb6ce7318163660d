#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <ronda/core/buffer.hpp>
#include <ronda/core/parallel.hpp>

namespace ronda::onednn {

/// How many of a size hold so many; the last may be filled in part.
[[nodiscard]] constexpr std::int64_t parts(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

// Long sums of arrays: see sum_block (layers/arithmetic.hpp).

/// total += block; block = 0
void add_block(double* total, float* block, std::size_t count);

/// sums += more
void add_to(float* sums, const float* more, std::size_t count, int threads);

/// Cuts a sum over rows into parts of `most` rows; the last part has the rest. A matrix product adds all its rows in
/// one float32 sum, so it is computed part by part, and the parts' results are added by pairs.
struct SumParts {
  std::int64_t rows = 0, most = 0;

  /// @param terms    terms of the sum per row
  /// @param numbers  size of the result. Each part takes a pass over it, so parts are longer for a result beyond the
  ///                 caches
  [[nodiscard]] static SumParts of(std::int64_t rows, std::int64_t terms, std::int64_t numbers) {
    constexpr std::int64_t cached = 1 << 16, short_part = 512, long_part = 2048;
    const std::int64_t wanted = (numbers <= cached ? short_part : long_part) / std::max<std::int64_t>(terms, 1);
    const std::int64_t count = (rows + std::max<std::int64_t>(wanted, 1) - 1) / std::max<std::int64_t>(wanted, 1);
    return {rows, count > 1 ? (rows + count - 1) / count : rows};
  }
  [[nodiscard]] static SumParts whole(std::int64_t rows) { return {rows, rows}; }

  [[nodiscard]] std::size_t count() const { return most > 0 ? static_cast<std::size_t>((rows + most - 1) / most) : 1; }
  [[nodiscard]] std::int64_t first(std::size_t part) const { return static_cast<std::int64_t>(part) * most; }
  [[nodiscard]] std::int64_t size(std::size_t part) const { return std::min(most, rows - first(part)); }
  /// Rows of the last part if it is shorter; otherwise 0.
  [[nodiscard]] std::int64_t rest() const { return most > 0 ? rows % most : 0; }
  /// Scratch arrays of `sum_by_pairs`, each as long as the result; and their bytes, to whole cache lines, for a result
  /// of `bytes`.
  [[nodiscard]] std::size_t levels() const { return static_cast<std::size_t>(std::bit_width(count() - 1)); }
  [[nodiscard]] std::size_t scratch_bytes(std::size_t bytes) const {
    return (levels() * bytes + Buffer::alignment - 1) / Buffer::alignment * Buffer::alignment;
  }
};

/// Writes the sum over `parts`. The rounding error of adding them grows with the logarithm of their number.
/// @param write    (part, to): writes the sum of one part
/// @param scratch  SumParts::scratch_bytes: arrays of `count` numbers, one after another
template <class Write>
void sum_by_pairs(Range parts, float* sums, std::size_t count, float* scratch, int threads, Write&& write) {
  if (parts.size() == 1) return write(parts.begin, sums);
  const std::size_t middle = parts.begin + (parts.size() + 1) / 2;
  sum_by_pairs({parts.begin, middle}, sums, count, scratch, threads, write);
  sum_by_pairs({middle, parts.end}, scratch, count, scratch + count, threads, write);
  add_to(sums, scratch, count, threads);
}

}  // namespace ronda::onednn
