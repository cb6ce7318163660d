#include <ronda/layers/onednn/nonzeros.hpp>
#include <ronda/layers/onednn/processor.hpp>
#include <ronda/layers/onednn/sums.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>

namespace ronda::onednn {
namespace {

constexpr std::int64_t most_lanes = 16;
constexpr std::int64_t half_chunk = NonZeros::chunk / 2;  ///< rows of a column's word: a lane has 32 bits

}  // namespace

NonZeros::NonZeros(std::int64_t rows, std::int64_t columns)
    : rows_(rows),
      columns_(columns),
      row_marks_(parts(columns, chunk)),
      column_marks_(parts(rows, chunk)),
      padded_(parts(columns, most_lanes) * most_lanes) {}

std::size_t NonZeros::bytes() const noexcept {
  return static_cast<std::size_t>(std::max(rows_ * row_marks_, column_marks_ * padded_)) * sizeof(std::uint64_t);
}

bool NonZeros::are_few(std::int64_t count) const noexcept {
  constexpr double most = 0.6;
  return static_cast<double>(count) < most * static_cast<double>(rows_ * columns_);
}

#if defined(__x86_64__)
#define RONDA_AVX512 [[gnu::target("avx512f,bmi,popcnt")]]
#define RONDA_AVX512_INLINE [[gnu::target("avx512f,bmi,popcnt"), gnu::always_inline]] inline
#define RONDA_AVX2 [[gnu::target("avx2,fma,bmi,popcnt")]]
#define RONDA_AVX2_INLINE [[gnu::target("avx2,fma,bmi,popcnt"), gnu::always_inline]] inline

namespace {

// A function has the instructions of one set, so the loops below stand here once for each.

/// A row of sums, in registers: 4 of AVX-512.
struct Avx512 {
  static constexpr std::int64_t lanes = 16;
  static constexpr int vectors = NonZeros::width / lanes;
  __m512 sum[vectors];

  /// Which of up to sixteen numbers are not 0: those that are NaN too.
  RONDA_AVX512_INLINE static __mmask16 marks_of(const float* x, std::int64_t count) {
    const auto there = static_cast<__mmask16>(count < lanes ? (1U << count) - 1 : 0xffffU);
    return _mm512_cmp_ps_mask(_mm512_maskz_loadu_ps(there, x), _mm512_setzero_ps(), _CMP_NEQ_UQ);
  }
  RONDA_AVX512_INLINE void load(const float* c) {
    for (int v = 0; v < vectors; ++v) sum[v] = _mm512_load_ps(c + v * lanes);
  }
  RONDA_AVX512_INLINE void clear() {
    for (int v = 0; v < vectors; ++v) sum[v] = _mm512_setzero_ps();
  }
  /// Adds x[k · step] times row k of b for each k that is marked.
  RONDA_AVX512_INLINE void add(const float* x, std::int64_t step, std::uint64_t marks, const float* b) {
    for (; marks != 0; marks &= marks - 1) {
      const std::int64_t k = std::countr_zero(marks);
      const __m512 element = _mm512_set1_ps(x[k * step]);
      for (int v = 0; v < vectors; ++v)
        sum[v] = _mm512_fmadd_ps(element, _mm512_load_ps(b + k * NonZeros::width + v * lanes), sum[v]);
    }
  }
  RONDA_AVX512_INLINE void store(float* c) const {
    for (int v = 0; v < vectors; ++v) _mm512_store_ps(c + v * lanes, sum[v]);
  }
};

/// The same in 8 registers of AVX2.
struct Avx2 {
  static constexpr std::int64_t lanes = 8;
  static constexpr int vectors = NonZeros::width / lanes;
  __m256 sum[vectors];

  /// Of up to eight numbers, all bits of each that is not 0.
  RONDA_AVX2_INLINE static __m256 marks_of(const float* x, std::int64_t count) {
    const __m256i there = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(std::min(count, lanes))),
                                             _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    return _mm256_cmp_ps(_mm256_maskload_ps(x, there), _mm256_setzero_ps(), _CMP_NEQ_UQ);
  }
  RONDA_AVX2_INLINE void load(const float* c) {
    for (int v = 0; v < vectors; ++v) sum[v] = _mm256_load_ps(c + v * lanes);
  }
  RONDA_AVX2_INLINE void clear() {
    for (int v = 0; v < vectors; ++v) sum[v] = _mm256_setzero_ps();
  }
  RONDA_AVX2_INLINE void add(const float* x, std::int64_t step, std::uint64_t marks, const float* b) {
    for (; marks != 0; marks &= marks - 1) {
      const std::int64_t k = std::countr_zero(marks);
      const __m256 element = _mm256_set1_ps(x[k * step]);
      for (int v = 0; v < vectors; ++v)
        sum[v] = _mm256_fmadd_ps(element, _mm256_load_ps(b + k * NonZeros::width + v * lanes), sum[v]);
    }
  }
  RONDA_AVX2_INLINE void store(float* c) const {
    for (int v = 0; v < vectors; ++v) _mm256_store_ps(c + v * lanes, sum[v]);
  }
};

}  // namespace

template <>
RONDA_AVX512 bool NonZeros::mark_rows_by<Avx512>(const float* x, std::uint64_t* marks) const {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < rows_; ++row)
    for (std::int64_t word = 0; word < row_marks_; ++word, ++marks) {
      const std::int64_t first = word * chunk, end = std::min(first + chunk, columns_);
      std::uint64_t bits = 0;
      for (std::int64_t column = first; column < end; column += Avx512::lanes)
        bits |= std::uint64_t{Avx512::marks_of(x + row * columns_ + column, end - column)} << (column - first);
      *marks = bits;
      count += std::popcount(bits);
    }
  return are_few(count);
}

template <>
RONDA_AVX2 bool NonZeros::mark_rows_by<Avx2>(const float* x, std::uint64_t* marks) const {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < rows_; ++row)
    for (std::int64_t word = 0; word < row_marks_; ++word, ++marks) {
      const std::int64_t first = word * chunk, end = std::min(first + chunk, columns_);
      std::uint64_t bits = 0;
      for (std::int64_t column = first; column < end; column += Avx2::lanes) {
        const __m256 eight = Avx2::marks_of(x + row * columns_ + column, end - column);
        bits |= static_cast<std::uint64_t>(_mm256_movemask_ps(eight)) << (column - first);
      }
      *marks = bits;
      count += std::popcount(bits);
    }
  return are_few(count);
}

template <>
RONDA_AVX512 bool NonZeros::mark_columns_by<Avx512>(const float* x, std::uint32_t* marks) const {
  std::int64_t count = 0;
  for (std::int64_t word = 0; word < 2 * column_marks_; ++word) {
    const std::int64_t first = word * half_chunk, end = std::min(first + half_chunk, rows_);
    for (std::int64_t column = 0; column < columns_; column += Avx512::lanes) {
      __m512i bits = _mm512_setzero_si512();
      for (std::int64_t row = first; row < end; ++row)
        bits = _mm512_mask_or_epi32(bits, Avx512::marks_of(x + row * columns_ + column, columns_ - column), bits,
                                    _mm512_set1_epi32(static_cast<int>(1U << (row - first))));
      std::uint32_t* const to = marks + word * padded_ + column;
      _mm512_storeu_si512(to, bits);
      for (std::int64_t lane = 0; lane < Avx512::lanes; ++lane) count += std::popcount(to[lane]);
    }
  }
  return are_few(count);
}

template <>
RONDA_AVX2 bool NonZeros::mark_columns_by<Avx2>(const float* x, std::uint32_t* marks) const {
  std::int64_t count = 0;
  for (std::int64_t word = 0; word < 2 * column_marks_; ++word) {
    const std::int64_t first = word * half_chunk, end = std::min(first + half_chunk, rows_);
    for (std::int64_t column = 0; column < columns_; column += Avx2::lanes) {
      __m256i bits = _mm256_setzero_si256();
      for (std::int64_t row = first; row < end; ++row) {
        const __m256 eight = Avx2::marks_of(x + row * columns_ + column, columns_ - column);
        const __m256i bit = _mm256_set1_epi32(static_cast<int>(1U << (row - first)));
        bits = _mm256_or_si256(bits, _mm256_and_si256(_mm256_castps_si256(eight), bit));
      }
      std::uint32_t* const to = marks + word * padded_ + column;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bits);
      for (std::int64_t lane = 0; lane < Avx2::lanes; ++lane) count += std::popcount(to[lane]);
    }
  }
  return are_few(count);
}

template <>
RONDA_AVX512 void NonZeros::add_rows_by<Avx512>(const float* x, const std::uint64_t* marks, std::int64_t first,
                                                const float* b, float* c) const {
  for (std::int64_t row = 0; row < rows_; ++row, c += width) {
    const std::uint64_t bits = marks[row * row_marks_ + first / chunk];
    if (bits == 0) continue;
    Avx512 sums;
    sums.load(c);
    sums.add(x + row * columns_ + first, 1, bits, b);
    sums.store(c);
  }
}

template <>
RONDA_AVX512 void NonZeros::multiply_columns_by<Avx512>(const float* x, const std::uint32_t* marks, const float* b,
                                                        float* c) const {
  for (std::int64_t column = 0; column < columns_; ++column, c += width) {
    Avx512 sums;
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

template <>
RONDA_AVX2 void NonZeros::add_rows_by<Avx2>(const float* x, const std::uint64_t* marks, std::int64_t first,
                                            const float* b, float* c) const {
  for (std::int64_t row = 0; row < rows_; ++row, c += width) {
    const std::uint64_t bits = marks[row * row_marks_ + first / chunk];
    if (bits == 0) continue;
    Avx2 sums;
    sums.load(c);
    sums.add(x + row * columns_ + first, 1, bits, b);
    sums.store(c);
  }
}

template <>
RONDA_AVX2 void NonZeros::multiply_columns_by<Avx2>(const float* x, const std::uint32_t* marks, const float* b,
                                                    float* c) const {
  for (std::int64_t column = 0; column < columns_; ++column, c += width) {
    Avx2 sums;
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

bool NonZeros::mark_rows(const float* x, std::uint64_t* marks) const {
  return has_avx512() ? mark_rows_by<Avx512>(x, marks) : mark_rows_by<Avx2>(x, marks);
}
bool NonZeros::mark_columns(const float* x, std::uint32_t* marks) const {
  return has_avx512() ? mark_columns_by<Avx512>(x, marks) : mark_columns_by<Avx2>(x, marks);
}
void NonZeros::add_rows(const float* x, const std::uint64_t* marks, std::int64_t first, const float* b,
                        float* c) const {
  has_avx512() ? add_rows_by<Avx512>(x, marks, first, b, c) : add_rows_by<Avx2>(x, marks, first, b, c);
}
void NonZeros::multiply_columns(const float* x, const std::uint32_t* marks, const float* b, float* c) const {
  has_avx512() ? multiply_columns_by<Avx512>(x, marks, b, c) : multiply_columns_by<Avx2>(x, marks, b, c);
}
#else
bool NonZeros::mark_rows(const float*, std::uint64_t*) const { return false; }
bool NonZeros::mark_columns(const float*, std::uint32_t*) const { return false; }
void NonZeros::add_rows(const float*, const std::uint64_t*, std::int64_t, const float*, float*) const {}
void NonZeros::multiply_columns(const float*, const std::uint32_t*, const float*, float*) const {}
#endif

}  // namespace ronda::onednn
