#include <ronda/layers/onednn/strassen_tile.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <optional>

namespace ronda::onednn::strassen {

#if defined(__x86_64__)
// Written out, as the products of Panels are.

namespace {

constexpr std::int64_t vectors = kernel_columns / lanes;

/// `to` = a product's result and some terms. The third is c's own: what comes before it is multiplied with `unscale`.
struct Sum {
  Rows<float> to;
  std::array<Rows<const float>, 3> terms;
  float unscale = 1;
};

#define RONDA_KERNEL [[gnu::target("avx512f"), gnu::always_inline]] inline

using Registers = __m512[kernel_rows][vectors];

/// What a kernel reads, step by step of the depth.
struct Source {
  const float *a, *b, *later;
};

/// Fetches what comes some steps later.
RONDA_KERNEL void fetch_step(const Source& from, int step) {
  constexpr std::int64_t ahead = 16;
  __builtin_prefetch(from.b + (step + ahead) * kernel_columns);
  __builtin_prefetch(from.b + (step + ahead) * kernel_columns + lanes);
  __builtin_prefetch(from.a + (step + ahead) * kernel_rows);
  __builtin_prefetch(from.later + step * lanes, 0, 2);
}
RONDA_KERNEL void advance(Source& from, int steps) {
  from.a += steps * kernel_rows;
  from.b += steps * kernel_columns;
  from.later += steps * lanes;
}

RONDA_KERNEL void add_step(Registers& sums, Source& from) {
  fetch_step(from, 0);
  __m512 row_of_b[vectors];
  for (int v = 0; v < vectors; ++v) row_of_b[v] = _mm512_load_ps(from.b + v * lanes);
#pragma GCC unroll 12
  for (int r = 0; r < kernel_rows; ++r) {
    const __m512 element = _mm512_set1_ps(from.a[r]);
    for (int v = 0; v < vectors; ++v) sums[r][v] = _mm512_fmadd_ps(element, row_of_b[v], sums[r][v]);
  }
  advance(from, 1);
}

// The two below take elements of a from memory in the instructions that need them. With intrinsics a compiler shares a
// register between two, and then the pipes of sums and those of multiply-adds do not run at once: there are too few
// ways out of the registers.

/// sum + (x1 + y2)(x2 + y1)
RONDA_KERNEL __m512 add_pair(__m512 sum, const float& x1, const float& x2, __m512 y1, __m512 y2) {
  __m512 first, second;
  asm("vaddps %3%{1to16%}, %6, %1\n\tvaddps %4%{1to16%}, %5, %2\n\tvfmadd231ps %1, %2, %0"
      : "+v"(sum), "=&v"(first), "=&v"(second)
      : "m"(x1), "m"(x2), "v"(y1), "v"(y2));
  return sum;
}
/// sum + x · y
RONDA_KERNEL __m512 add_product(__m512 sum, const float& x, __m512 y) {
  asm("vfmadd231ps %1%{1to16%}, %2, %0" : "+v"(sum) : "m"(x), "v"(y));
  return sum;
}

/// A pair of steps, and a third.
RONDA_KERNEL void add_paired_group(Registers& sums, Source& from) {
  const float *const x1 = from.a, *const x2 = x1 + kernel_rows, *const x3 = x2 + kernel_rows;
  __m512 y[paired_group][vectors];
#pragma GCC unroll 3
  for (int k = 0; k < paired_group; ++k) {
    fetch_step(from, k);
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) y[k][v] = _mm512_load_ps(from.b + k * kernel_columns + v * lanes);
  }
#pragma GCC unroll 12
  for (int r = 0; r < kernel_rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) sums[r][v] = add_pair(sums[r][v], x1[r], x2[r], y[0][v], y[1][v]);
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) sums[r][v] = add_product(sums[r][v], x3[r], y[2][v]);
  }
  advance(from, paired_group);
}

template <int terms>
RONDA_KERNEL void fetch_row(const Sum& sum, std::int64_t r) {
  for (int v = 0; v < vectors; ++v) {
    __builtin_prefetch(sum.to.first + r * sum.to.row + v * lanes, 1);
    for (int t = 0; t < terms; ++t) __builtin_prefetch(sum.terms[t].first + r * sum.terms[t].row + v * lanes);
  }
}

template <int terms>
RONDA_KERNEL void write(const Registers& sums, const Sum& sum) {
#pragma GCC unroll 12
  for (int r = 0; r < kernel_rows; ++r)
    for (int v = 0; v < vectors; ++v) {
      __m512 value = sums[r][v];
#pragma GCC unroll 3
      for (int t = 0; t < terms; ++t) {
        const __m512 term = _mm512_loadu_ps(sum.terms[t].first + r * sum.terms[t].row + v * lanes);
        value = t == 2 ? _mm512_fmadd_ps(value, _mm512_set1_ps(sum.unscale), term) : _mm512_add_ps(value, term);
      }
      _mm512_storeu_ps(sum.to.first + r * sum.to.row + v * lanes, value);
    }
}

RONDA_KERNEL void fetch(Ahead& ahead) {
  const std::int64_t end = std::min(ahead.next + ahead.burst, ahead.last);
  for (; ahead.next < end; ++ahead.next)
    __builtin_prefetch(ahead.from + ahead.next / ahead.lines * ahead.row + ahead.next % ahead.lines * lanes, 0, 2);
}

/// Zeros, or what pairs of steps sum up beside the product.
template <bool paired>
RONDA_KERNEL void begin(Registers& sums, const Factors& factors) {
  const float* const of_a = pair_sums(factors.a, factors.depth, kernel_rows);
  const float* const of_b = pair_sums(factors.b, factors.depth, kernel_columns);
#pragma GCC unroll 12
  for (int r = 0; r < kernel_rows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      sums[r][v] = _mm512_setzero_ps();
      if constexpr (paired) {
        const __m512 of_both = _mm512_add_ps(_mm512_load_ps(of_b + v * lanes), _mm512_set1_ps(of_a[r]));
        sums[r][v] = _mm512_sub_ps(sums[r][v], of_both);
      }
    }
}

/// Two steps of the depth, or three.
template <bool paired>
RONDA_KERNEL void add_group(Registers& sums, Source& from) {
  if constexpr (paired) {
    add_paired_group(sums, from);
  } else {
    add_step(sums, from);
    add_step(sums, from);
  }
}

/// One product, and so many sums with it as `terms`, of so many terms each.
template <bool paired, int... terms>
[[gnu::target("avx512f"), gnu::noinline]] void multiply(const Factors& factors, const Sum* sums, Ahead& ahead) {
  Source from{factors.a, factors.b, factors.later};
  Registers result;
  begin<paired>(result, factors);
  fetch(ahead);
  // What is added and where it goes has often left the first-level cache. It is fetched in the middle: not for long.
  constexpr std::int64_t steps = paired ? paired_group : 2;
  const std::int64_t groups = factors.depth / steps, rows = std::min(kernel_rows, groups), before = (groups - rows) / 2;
  for (std::int64_t i = 0; i < before; ++i) add_group<paired>(result, from);
  for (std::int64_t r = 0; r < rows; ++r) {
    add_group<paired>(result, from);
    const Sum* sum = sums;
    (fetch_row<terms>(*sum++, r), ...);
  }
  for (std::int64_t i = before + rows; i < groups; ++i) add_group<paired>(result, from);
  for (std::int64_t k = groups * steps; k < factors.depth; ++k) add_step(result, from);
  const Sum* sum = sums;
  (write<terms>(result, *sum++), ...);
}
#undef RONDA_KERNEL

/// The inner level: one block, and a sum with it for each of `terms`.
template <bool paired, int... terms>
void multiply_inner(Factors factors, const Sum* sums, Ahead& ahead) {
  constexpr int count = sizeof...(terms);
  alignas(64) float p1[kernel_rows * kernel_columns], u2[kernel_rows * kernel_columns],
      u3[kernel_rows * kernel_columns];
  const auto rows = [](float* first) { return Rows<float>{first, kernel_columns}; };
  std::array<Sum, count + 1> now;
  const auto keep = [&](float* to, float* term) { now[0] = {rows(to), {rows(term)}}; };
  const auto finish = [&](int index, std::int64_t row, std::int64_t column, float* term) {
    for (int i = 0; i < count; ++i) {
      now[index + i].to = sums[i].to.at(row, column);
      now[index + i].terms = {rows(term), sums[i].terms[0].at(row, column), sums[i].terms[1].at(row, column)};
      now[index + i].unscale = sums[i].unscale;
    }
  };
  const auto go_on = [&factors] {
    factors.a += factor_floats(factors.depth, kernel_rows);
    factors.b += factor_floats(factors.depth, kernel_columns);
    factors.later += factors.depth * lanes;
  };
  keep(p1, nullptr);
  multiply<paired, 0>(factors, now.data(), ahead);
  go_on();
  finish(0, 0, 0, p1);  // + p2
  multiply<paired, terms + 1 ...>(factors, now.data(), ahead);
  go_on();
  keep(u2, p1);  // + p6
  multiply<paired, 1>(factors, now.data(), ahead);
  go_on();
  keep(u3, u2);  // + p7
  multiply<paired, 1>(factors, now.data(), ahead);
  go_on();
  finish(0, kernel_rows, 0, u3);  // - p4
  multiply<paired, terms + 1 ...>(factors, now.data(), ahead);
  go_on();
  keep(p1, u2);  // + p5
  finish(1, kernel_rows, kernel_columns, u3);
  multiply<paired, 1, terms + 1 ...>(factors, now.data(), ahead);
  go_on();
  finish(0, 0, kernel_columns, p1);  // + p3
  multiply<paired, terms + 1 ...>(factors, now.data(), ahead);
}

/// The outer level: where the block's result goes. From block 5 on, p1 is u2 + p5.
template <bool paired>
void multiply_outer(std::int64_t block, const Factors& factors, const Destination& to, Partial& partial, Ahead& ahead) {
  const Rows<float> p1{partial.p1.data(), block_columns}, u2{partial.u2.data(), block_columns},
      u3{partial.u3.data(), block_columns};
  const auto finish = [&](const Rows<float>& term) { return Sum{to.c, {term, to.start}, to.unscale}; };
  std::array<Sum, 2> sums;
  const auto keep = [&](const Rows<float>& where, const Rows<float>& term) { sums[0] = {where, {term}}; };
  switch (block) {
    case 0: keep(p1, {}); return multiply_inner<paired, 0>(factors, sums.data(), ahead);
    case 2: keep(u2, p1); return multiply_inner<paired, 1>(factors, sums.data(), ahead);
    case 3: keep(u3, u2); return multiply_inner<paired, 1>(factors, sums.data(), ahead);
    case 5:
      keep(p1, u2);
      sums[1] = finish(u3);
      return multiply_inner<paired, 1, 2>(factors, sums.data(), ahead);
    case 1:
    case 6: sums[0] = finish(p1); return multiply_inner<paired, 2>(factors, sums.data(), ahead);
    default: sums[0] = finish(u3); return multiply_inner<paired, 2>(factors, sums.data(), ahead);
  }
}

struct Place {
  std::int64_t row, column;
};
/// c's part that a block finishes, if any.
constexpr std::array<std::optional<Place>, blocks> finished{std::nullopt,           Place{0, 0},
                                                            std::nullopt,           std::nullopt,
                                                            Place{block_rows, 0},   Place{block_rows, block_columns},
                                                            Place{0, block_columns}};

}  // namespace

void multiply_block(std::int64_t block, const Factors& factors, const Destination& to, std::int64_t rows,
                    std::int64_t columns, Partial& partial, Ahead& ahead) {
  const auto multiply = factors.paired ? multiply_outer<true> : multiply_outer<false>;
  if (!finished[block]) return multiply(block, factors, to, partial, ahead);
  const auto [row, column] = *finished[block];
  const Destination part{to.start.at(row, column), to.c.at(row, column), to.unscale};
  const std::int64_t some_rows = std::clamp<std::int64_t>(rows - row, 0, block_rows),
                     some_columns = std::clamp<std::int64_t>(columns - column, 0, block_columns);
  if (some_rows == block_rows && some_columns == block_columns) return multiply(block, factors, part, partial, ahead);
  alignas(64) std::array<float, block_rows * block_columns> whole{};
  const Rows<float> inner{whole.data(), block_columns};
  for (std::int64_t r = 0; r < some_rows; ++r)
    std::copy_n(part.start.first + r * part.start.row, some_columns, whole.data() + r * block_columns);
  multiply(block, factors, {inner, inner, to.unscale}, partial, ahead);
  for (std::int64_t r = 0; r < some_rows; ++r)
    std::copy_n(whole.data() + r * block_columns, some_columns, part.c.first + r * part.c.row);
}

#else
void multiply_block(std::int64_t, const Factors&, const Destination&, std::int64_t, std::int64_t, Partial&, Ahead&) {
}  // `suit_processor` says no
#endif

}  // namespace ronda::onednn::strassen
