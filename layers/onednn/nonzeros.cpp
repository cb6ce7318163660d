#include <ronda/layers/onednn/nonzeros.hpp>
#include <ronda/layers/onednn/parts.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>

namespace ronda::onednn {
namespace {

constexpr std::int64_t lanes = 16;
constexpr std::int64_t half_chunk = NonZeros::chunk / 2;  ///< rows of a column's word: a lane has 32 bits

}  // namespace

NonZeros::NonZeros(std::int64_t rows, std::int64_t columns)
    : rows_(rows),
      columns_(columns),
      row_marks_(parts(columns, chunk)),
      column_marks_(parts(rows, chunk)),
      padded_(parts(columns, lanes) * lanes) {}

std::size_t NonZeros::bytes() const noexcept {
  return static_cast<std::size_t>(std::max(rows_ * row_marks_, column_marks_ * padded_)) * sizeof(std::uint64_t);
}

bool NonZeros::are_few(std::int64_t count) const noexcept {
  constexpr double most = 0.6;
  return static_cast<double>(count) < most * static_cast<double>(rows_ * columns_);
}

#if defined(__x86_64__)
#define RONDA_MARKS [[gnu::target("avx512f,bmi,popcnt")]]
#define RONDA_MARKS_INLINE [[gnu::target("avx512f,bmi,popcnt"), gnu::always_inline]] inline

namespace {

/// Which of up to sixteen numbers are not 0: those that are NaN too.
RONDA_MARKS_INLINE __mmask16 marks_of(const float* x, std::int64_t count) {
  const auto there = static_cast<__mmask16>(count < lanes ? (1U << count) - 1 : 0xffffU);
  return _mm512_cmp_ps_mask(_mm512_maskz_loadu_ps(there, x), _mm512_setzero_ps(), _CMP_NEQ_UQ);
}

/// A row of sums, in registers.
struct Sums {
  static constexpr int vectors = NonZeros::width / lanes;
  __m512 sum[vectors];

  RONDA_MARKS_INLINE void load(const float* c) {
    for (int v = 0; v < vectors; ++v) sum[v] = _mm512_load_ps(c + v * lanes);
  }
  RONDA_MARKS_INLINE void clear() {
    for (int v = 0; v < vectors; ++v) sum[v] = _mm512_setzero_ps();
  }
  /// Adds x[k · step] times row k of b for each k that is marked.
  RONDA_MARKS_INLINE void add(const float* x, std::int64_t step, std::uint64_t marks, const float* b) {
    for (; marks != 0; marks &= marks - 1) {
      const std::int64_t k = std::countr_zero(marks);
      const __m512 element = _mm512_set1_ps(x[k * step]);
      for (int v = 0; v < vectors; ++v)
        sum[v] = _mm512_fmadd_ps(element, _mm512_load_ps(b + k * NonZeros::width + v * lanes), sum[v]);
    }
  }
  RONDA_MARKS_INLINE void store(float* c) const {
    for (int v = 0; v < vectors; ++v) _mm512_store_ps(c + v * lanes, sum[v]);
  }
};

}  // namespace

RONDA_MARKS bool NonZeros::mark_rows(const float* x, std::uint64_t* marks) const {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < rows_; ++row)
    for (std::int64_t word = 0; word < row_marks_; ++word, ++marks) {
      const std::int64_t first = word * chunk, end = std::min(first + chunk, columns_);
      std::uint64_t bits = 0;
      for (std::int64_t column = first; column < end; column += lanes)
        bits |= std::uint64_t{marks_of(x + row * columns_ + column, end - column)} << (column - first);
      *marks = bits;
      count += std::popcount(bits);
    }
  return are_few(count);
}

RONDA_MARKS bool NonZeros::mark_columns(const float* x, std::uint32_t* marks) const {
  std::int64_t count = 0;
  for (std::int64_t word = 0; word < 2 * column_marks_; ++word) {
    const std::int64_t first = word * half_chunk, end = std::min(first + half_chunk, rows_);
    for (std::int64_t column = 0; column < columns_; column += lanes) {
      __m512i bits = _mm512_setzero_si512();
      for (std::int64_t row = first; row < end; ++row)
        bits = _mm512_mask_or_epi32(bits, marks_of(x + row * columns_ + column, columns_ - column), bits,
                                    _mm512_set1_epi32(static_cast<int>(1U << (row - first))));
      std::uint32_t* const to = marks + word * padded_ + column;
      _mm512_storeu_si512(to, bits);
      for (std::int64_t lane = 0; lane < lanes; ++lane) count += std::popcount(to[lane]);
    }
  }
  return are_few(count);
}

RONDA_MARKS void NonZeros::add_rows(const float* x, const std::uint64_t* marks, std::int64_t first, const float* b,
                                    float* c) const {
  for (std::int64_t row = 0; row < rows_; ++row, c += width) {
    const std::uint64_t bits = marks[row * row_marks_ + first / chunk];
    if (bits == 0) continue;
    Sums sums;
    sums.load(c);
    sums.add(x + row * columns_ + first, 1, bits, b);
    sums.store(c);
  }
}

RONDA_MARKS void NonZeros::multiply_columns(const float* x, const std::uint32_t* marks, const float* b,
                                            float* c) const {
  for (std::int64_t column = 0; column < columns_; ++column, c += width) {
    Sums sums;
    sums.clear();
    for (std::int64_t word = 0; word < column_marks_; ++word) {
      const std::uint32_t* const pair = marks + 2 * word * padded_ + column;
      const std::int64_t first = word * chunk;
      sums.add(x + first * columns_ + column, columns_, pair[0] | std::uint64_t{pair[padded_]} << half_chunk,
               b + first * width);
    }
    sums.store(c);
  }
}
#else
bool NonZeros::mark_rows(const float*, std::uint64_t*) const { return false; }
bool NonZeros::mark_columns(const float*, std::uint32_t*) const { return false; }
void NonZeros::add_rows(const float*, const std::uint64_t*, std::int64_t, const float*, float*) const {}
void NonZeros::multiply_columns(const float*, const std::uint32_t*, const float*, float*) const {}
#endif

}  // namespace ronda::onednn
