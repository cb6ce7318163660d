#pragma once
#include <algorithm>

#include <ronda/layers/onednn/strassen_kernel.hpp>
#include <ronda/layers/onednn/vectors.hpp>

#if defined(__x86_64__)

/// The kernel for AVX2: a quarter of a product at a time, six rows and sixteen columns, whose sums take 12 of 16
/// registers. The factors stay in the first-level cache meanwhile. Steps are never paired: the loads of what pairs add
/// take longer than the multiplications that they save.
namespace ronda::onednn::strassen::avx2 {

#define RONDA_KERNEL [[RONDA_WITH_AVX2, gnu::always_inline]] inline

using namespace onednn::avx2;

constexpr int part_rows = 6, part_columns = lanes, vectors = 2, eight = 8;
constexpr std::int64_t parts = kernel_rows / part_rows * (kernel_columns / part_columns);

using Registers = Vector[part_rows][vectors];

/// Of a product: where its rows and columns begin.
struct Part {
  std::int64_t number, row, column;
};

/// Four steps. What later products need is fetched meanwhile, a part of it with each part of this one.
RONDA_KERNEL void add_steps(Registers& sums, const float* a, const float* b, const float* later) {
  constexpr std::int64_t ahead = 16;
  __builtin_prefetch(later, 0, 2);
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k, a += kernel_rows, b += kernel_columns) {
    __builtin_prefetch(b + ahead * kernel_columns);
    const Vector first = load(b), second = load(b + eight);
#pragma GCC unroll 6
    for (int r = 0; r < part_rows; ++r) {
      const Vector element = all(a[r]);
      sums[r][0] = add_product(element, first, sums[r][0]);
      sums[r][1] = add_product(element, second, sums[r][1]);
    }
  }
}

template <int terms>
RONDA_KERNEL void fetch_row(const Sum& sum, const Part& part, std::int64_t r) {
  __builtin_prefetch(sum.to.first + (part.row + r) * sum.to.row + part.column, 1);
  for (int t = 0; t < terms; ++t)
    __builtin_prefetch(sum.terms[t].first + (part.row + r) * sum.terms[t].row + part.column);
}

template <int terms>
RONDA_KERNEL void write(const Registers& sums, const Sum& sum, const Part& part) {
#pragma GCC unroll 6
  for (int r = 0; r < part_rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      Vector value = sums[r][v];
#pragma GCC unroll 3
      for (int t = 0; t < terms; ++t) {
        const Rows<const float>& from = sum.terms[t];
        const Vector term = load_anywhere(from.first + (part.row + r) * from.row + part.column + v * eight);
        value = t == 2 ? add_product(value, all(sum.unscale), term) : plus(value, term);
      }
      store_anywhere(sum.to.first + (part.row + r) * sum.to.row + part.column + v * eight, value);
    }
}

template <int... terms>
RONDA_KERNEL void multiply_part(const Factors& factors, const Sum* sums, const Part& part) {
  const float *a = factors.a + part.row, *b = factors.b + part.column,
              *later = factors.later + part.number * (factors.depth / parts) * lanes;
  Registers result;
#pragma GCC unroll 6
  for (int r = 0; r < part_rows; ++r) result[r][0] = result[r][1] = zeros();
  const auto go_on = [&](std::int64_t groups) __attribute__((always_inline, target(RONDA_AVX2_SET))) {
    for (std::int64_t i = 0; i < groups; ++i) {
      add_steps(result, a, b, later);
      a += 4 * kernel_rows;
      b += 4 * kernel_columns;
      later += lanes;
    }
  };
  // What is added and where it goes is fetched in the middle, as in the kernel for AVX-512.
  const std::int64_t groups = factors.depth / 4;
  go_on(groups / 2);
  for (std::int64_t r = 0; r < part_rows; ++r) {
    const Sum* sum = sums;
    (fetch_row<terms>(*sum++, part, r), ...);
  }
  go_on(groups - groups / 2);
  const Sum* sum = sums;
  (write<terms>(result, *sum++, part), ...);
}

RONDA_KERNEL void fetch(Ahead& ahead) {
  const std::int64_t end = std::min(ahead.next + ahead.burst, ahead.last);
  for (; ahead.next < end; ++ahead.next)
    __builtin_prefetch(ahead.from + ahead.next / ahead.lines * ahead.row + ahead.next % ahead.lines * lanes, 0, 2);
}

template <bool paired, int... terms>
[[RONDA_WITH_AVX2, gnu::noinline]] void multiply(const Factors& factors, const Sum* sums, Ahead& ahead) {
  static_assert(!paired);
  fetch(ahead);
  Part part{};
  for (; part.row < kernel_rows; part.row += part_rows)
    for (part.column = 0; part.column < kernel_columns; part.column += part_columns, ++part.number)
      multiply_part<terms...>(factors, sums, part);
}
#undef RONDA_KERNEL

}  // namespace ronda::onednn::strassen::avx2
#endif
