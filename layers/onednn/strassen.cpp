#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/layers/onednn/strassen.hpp>
#include <ronda/layers/onednn/transpose_four.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>

namespace ronda::onednn {

/// Memory that is read soon, and so is fetched into the second-level cache meanwhile: some lines a product.
struct Strassen::Ahead {
  const float* from = nullptr;
  std::int64_t row = 0;             ///< from one row to the next
  std::int64_t lines = 0;           ///< of 64 bytes, in a row
  std::int64_t next = 0, last = 0;  ///< of all rows' lines
  std::int64_t burst = 0;           ///< lines at a time: few enough to be on their way at once
};

namespace {

using Ahead = Strassen::Ahead;

constexpr std::int64_t half_rows = 12, half_columns = 32;  ///< of a tile: what registers hold
constexpr std::int64_t tile_rows = 2 * half_rows, tile_columns = 2 * half_columns;
constexpr std::int64_t products = 7;
constexpr std::int64_t most_half = 256;     ///< of the depth
constexpr std::int64_t strips_at_once = 4;  ///< whose factors, with those of a panel, stay in the second-level cache

constexpr std::int64_t floats_a_line = 16;
constexpr std::int64_t bursts = 3;  ///< in a tile

constexpr std::int64_t parts(std::int64_t count, std::int64_t size) { return (count + size - 1) / size; }

/// A tile of c (24, 64). It begins with `start`'s numbers, which may be its own.
struct Tile {
  const float *a, *b;  ///< the seven products' factors, one after another, in the order of `multiply_tile`
  std::int64_t depth;
  const float* start;  ///< null for zeros
  std::int64_t start_row;
  float* c;
  std::int64_t c_row;
  Ahead* ahead;
};

#if defined(__x86_64__)
// Written out, as the products of Panels are.

constexpr int lanes = 16, vectors = half_columns / lanes;

/// A quarter of a tile, in registers.
struct Quarter {
  __m512 sum[half_rows][vectors];
};

#define RONDA_KERNEL [[gnu::target("avx512f"), gnu::always_inline]] inline

/// Adds the next product, and goes on to what follows it.
RONDA_KERNEL void add_product(Quarter& q, const float*& a, const float*& b, std::int64_t depth) {
#pragma GCC unroll 2
  for (std::int64_t k = 0; k < depth; ++k, a += half_rows, b += half_columns) {
    constexpr std::int64_t ahead = 16;
    __builtin_prefetch(b + ahead * half_columns);
    __builtin_prefetch(b + ahead * half_columns + lanes);
    __m512 row_of_b[vectors];
    for (int v = 0; v < vectors; ++v) row_of_b[v] = _mm512_load_ps(b + v * lanes);
    for (int r = 0; r < half_rows; ++r) {
      const __m512 element = _mm512_set1_ps(a[r]);
      for (int v = 0; v < vectors; ++v) q.sum[r][v] = _mm512_fmadd_ps(element, row_of_b[v], q.sum[r][v]);
    }
  }
}
RONDA_KERNEL void clear(Quarter& q) {
  for (auto& row : q.sum)
    for (__m512& vector : row) vector = _mm512_setzero_ps();
}
RONDA_KERNEL void add(Quarter& q, const float* from, std::int64_t row) {
  for (int r = 0; r < half_rows; ++r)
    for (int v = 0; v < vectors; ++v)
      q.sum[r][v] = _mm512_add_ps(q.sum[r][v], _mm512_loadu_ps(from + r * row + v * lanes));
}
RONDA_KERNEL void load(Quarter& q, const float* from) {
  for (int r = 0; r < half_rows; ++r)
    for (int v = 0; v < vectors; ++v) q.sum[r][v] = _mm512_load_ps(from + r * half_columns + v * lanes);
}
RONDA_KERNEL void store(const Quarter& q, float* to, std::int64_t row) {
  for (int r = 0; r < half_rows; ++r)
    for (int v = 0; v < vectors; ++v) _mm512_storeu_ps(to + r * row + v * lanes, q.sum[r][v]);
}
RONDA_KERNEL void finish(Quarter& q, const Tile& t, std::int64_t row, std::int64_t column) {
  if (t.start != nullptr) add(q, t.start + row * t.start_row + column, t.start_row);
  store(q, t.c + row * t.c_row + column, t.c_row);
}

RONDA_KERNEL void fetch(const Tile& t, std::int64_t row, std::int64_t column) {
  for (int r = 0; r < half_rows; ++r)
    for (int v = 0; v < vectors; ++v) __builtin_prefetch(t.c + (row + r) * t.c_row + column + v * lanes, 1);
}
RONDA_KERNEL void fetch(Ahead& ahead) {
  const std::int64_t end = std::min(ahead.next + ahead.burst, ahead.last);
  for (; ahead.next < end; ++ahead.next)
    __builtin_prefetch(ahead.from + ahead.next / ahead.lines * ahead.row + ahead.next % ahead.lines * lanes, 0, 2);
}

[[gnu::target("avx512f")]] void multiply_tile(const Tile& t) {
  alignas(64) float p1[half_rows * half_columns], u2[half_rows * half_columns], u3[half_rows * half_columns];
  const float *a = t.a, *b = t.b;
  Quarter q;
  clear(q);
  fetch(t, 0, 0);
  add_product(q, a, b, t.depth);  // p1
  store(q, p1, half_columns);
  fetch(*t.ahead);
  add_product(q, a, b, t.depth);  // + p2
  finish(q, t, 0, 0);
  load(q, p1);
  fetch(t, half_rows, 0);
  add_product(q, a, b, t.depth);  // + p6
  store(q, u2, half_columns);
  fetch(*t.ahead);
  add_product(q, a, b, t.depth);  // + p7
  store(q, u3, half_columns);
  fetch(t, 0, half_columns);
  add_product(q, a, b, t.depth);  // - p4
  finish(q, t, half_rows, 0);
  clear(q);
  fetch(t, half_rows, half_columns);
  add_product(q, a, b, t.depth);  // p5
  store(q, p1, half_columns);
  add(q, u2, half_columns);
  fetch(*t.ahead);
  add_product(q, a, b, t.depth);  // + p3
  finish(q, t, 0, half_columns);
  load(q, p1);
  add(q, u3, half_columns);
  finish(q, t, half_rows, half_columns);
}
#undef RONDA_KERNEL
#else
void multiply_tile(const Tile&) {}  // `suit_processor` says no
#endif

/// A quarter of a factor as the kernel reads it: to (depth, width) = from's lines and their first steps, of which only
/// so many are there; zeros elsewhere.
template <std::int64_t width>
[[gnu::always_inline]] inline void pack_quarter(const float* from, Strassen::Strides strides, std::int64_t lines,
                                                std::int64_t steps, std::int64_t depth, float* __restrict to) {
  lines = std::clamp<std::int64_t>(lines, 0, width);
  steps = std::clamp<std::int64_t>(steps, 0, depth);
  if (lines < width || steps < depth) std::fill_n(to, depth * width, 0.0F);
  const bool along = strides.step == 1;
  const std::int64_t whole_lines = along ? lines / 4 * 4 : 0, whole_steps = steps / 4 * 4;
  for (std::int64_t i = 0; i < whole_lines; i += 4)
    for (std::int64_t k = 0; k < whole_steps; k += 4)
      transpose_four(from + i * strides.line + k, strides.line, to + k * width + i, width);
  if (!along && lines == width) {
    constexpr std::int64_t ahead = 16;
    for (std::int64_t k = 0; k < steps; ++k) {
      __builtin_prefetch(from + (k + ahead) * strides.step);
      __builtin_prefetch(from + (k + ahead) * strides.step + width - 1);
      std::memcpy(to + k * width, from + k * strides.step, static_cast<std::size_t>(width) * sizeof(float));
    }
    return;
  }
  for (std::int64_t k = 0; k < steps; ++k)
    for (std::int64_t i = k < whole_steps ? whole_lines : 0; i < lines; ++i)
      to[k * width + i] = from[i * strides.line + k * strides.step];
}

RONDA_MULTIVERSION void pack_rows_quarter(const float* from, Strassen::Strides strides, std::int64_t lines,
                                          std::int64_t steps, std::int64_t depth, float* to) {
  pack_quarter<half_rows>(from, strides, lines, steps, depth, to);
}
RONDA_MULTIVERSION void pack_columns_quarter(const float* from, Strassen::Strides strides, std::int64_t lines,
                                             std::int64_t steps, std::int64_t depth, float* to) {
  pack_quarter<half_columns>(from, strides, lines, steps, depth, to);
}

using Sixteen = float __attribute__((vector_size(64)));

/// The factors' numbers at one place, sixteen or one: in vectors, which a compiler does not make of as many arrays.
template <class Numbers>
struct Factors {
  float* first;
  std::int64_t factor;  ///< numbers of each

  [[gnu::always_inline]] void get(std::int64_t index, Numbers& numbers) const {
    std::memcpy(&numbers, first + index * factor, sizeof(numbers));
  }
  [[gnu::always_inline]] void set(std::int64_t index, const Numbers& numbers) const {
    std::memcpy(first + index * factor, &numbers, sizeof(numbers));
  }
};

/// In the order of the products in a tile: a11, a12, s2, s3, a22, s1, s4; what is a21 comes as s1.
template <class Numbers>
[[gnu::always_inline]] inline void sum_rows_at(const Factors<Numbers>& factors) {
  Numbers a11, a12, a21, a22;
  factors.get(0, a11);
  factors.get(1, a12);
  factors.get(5, a21);
  factors.get(4, a22);
  const Numbers s1 = a21 + a22, s2 = s1 - a11;
  factors.set(2, s2);
  factors.set(3, a11 - a21);
  factors.set(5, s1);
  factors.set(6, a12 - s2);
}
/// Likewise: b11, b21, t2, t3, -t4, t1, b22; what is b12 comes as t1.
template <class Numbers>
[[gnu::always_inline]] inline void sum_columns_at(const Factors<Numbers>& factors) {
  Numbers b11, b12, b21, b22;
  factors.get(0, b11);
  factors.get(5, b12);
  factors.get(1, b21);
  factors.get(6, b22);
  const Numbers t1 = b12 - b11, t2 = b22 - t1;
  factors.set(2, t2);
  factors.set(3, b22 - b12);
  factors.set(4, b21 - t2);
  factors.set(5, t1);
}

RONDA_MULTIVERSION void sum_rows(float* factors, std::int64_t factor, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + floats_a_line <= count; i += floats_a_line) sum_rows_at(Factors<Sixteen>{factors + i, factor});
  for (; i < count; ++i) sum_rows_at(Factors<float>{factors + i, factor});
}
RONDA_MULTIVERSION void sum_columns(float* factors, std::int64_t factor, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + floats_a_line <= count; i += floats_a_line) sum_columns_at(Factors<Sixteen>{factors + i, factor});
  for (; i < count; ++i) sum_columns_at(Factors<float>{factors + i, factor});
}

/// The lines of a factor that a tile needs, rows of a or columns of b, from the first step of a piece of the depth on.
struct Side {
  const float* first;
  Strassen::Strides strides;
  std::int64_t lines, steps;  ///< so many are there
};

/// Some steps of both halves of the depth: quarters, then what is made of them.
/// @param half     steps of half a piece
/// @param factors  of the seven products
template <std::int64_t width>
void pack_side(const Side& side, std::int64_t half, Range steps, float* factors) {
  constexpr bool rows = width == half_rows;
  const auto begin = static_cast<std::int64_t>(steps.begin), count = static_cast<std::int64_t>(steps.size());
  factors += begin * width;
  const auto pack = [&](std::int64_t line, std::int64_t step, std::int64_t place) {
    step += begin;
    const float* const from = side.first + line * side.strides.line + step * side.strides.step;
    (rows ? pack_rows_quarter : pack_columns_quarter)(from, side.strides, side.lines - line, side.steps - step, count,
                                                      factors + place * half * width);
  };
  pack(0, 0, 0);
  pack(width, 0, 5);
  pack(0, half, 1);
  pack(width, half, rows ? 4 : 6);
  (rows ? sum_rows : sum_columns)(factors, half * width, count * width);
}

/// A tile of which only `rows` and `columns` are there.
void multiply_edge(Tile tile, std::int64_t rows, std::int64_t columns) {
  alignas(64) std::array<float, tile_rows * tile_columns> whole{};
  float* const c = tile.c;
  const std::int64_t c_row = tile.c_row;
  if (tile.start != nullptr)
    for (std::int64_t row = 0; row < rows; ++row)
      std::copy_n(tile.start + row * tile.start_row, columns, whole.data() + row * tile_columns);
  tile.c = whole.data();
  tile.c_row = tile_columns;
  if (tile.start != nullptr) {
    tile.start = whole.data();
    tile.start_row = tile_columns;
  }
  multiply_tile(tile);
  for (std::int64_t row = 0; row < rows; ++row)
    std::copy_n(whole.data() + row * tile_columns, columns, c + row * c_row);
}

}  // namespace

bool Strassen::suit_processor() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") != 0;
#else
  return false;
#endif
}

Strassen::Strassen(std::int64_t rows, std::int64_t depth, std::int64_t columns, Strides a, Strides b, int threads)
    : rows_(rows),
      depth_(depth),
      columns_(columns),
      a_(a),
      b_(b),
      half_(parts(depth, 2 * parts(depth, 2 * most_half))),
      strips_(parts(rows, tile_rows)),
      panels_(parts(columns, tile_columns)),
      threads_(threads) {}

std::int64_t Strassen::strip_floats() const noexcept { return products * half_ * half_rows; }
std::int64_t Strassen::panel_floats() const noexcept { return products * half_ * half_columns; }

std::size_t Strassen::scratch_bytes() const noexcept {
  constexpr std::int64_t line = 16;
  const std::int64_t strips = parts(strips_at_once * strip_floats(), line) * line;
  return static_cast<std::size_t>(panels_ * panel_floats() + threads_ * strips) * sizeof(float);
}

/// The factors of 24 rows: some steps of the piece of the depth that begins at k.
void Strassen::pack_strip(const float* a, std::int64_t strip, std::int64_t k, Range steps, float* factors) const {
  const std::int64_t row = strip * tile_rows;
  pack_side<half_rows>({a + row * a_.line + k * a_.step, a_, rows_ - row, depth_ - k}, half_, steps, factors);
}

/// Likewise of 64 columns.
void Strassen::pack_panel(const float* b, std::int64_t panel, std::int64_t k, Range steps, float* factors) const {
  const std::int64_t column = panel * tile_columns;
  pack_side<half_columns>({b + column * b_.line + k * b_.step, b_, columns_ - column, depth_ - k}, half_, steps,
                          factors);
}

/// body(steps) for some steps of half a piece of the depth at a time, whose quarters stay in the first-level cache.
template <class Body>
void Strassen::each_steps(std::int64_t at_once, Body&& body) const {
  for (std::int64_t begin = 0; begin < half_; begin += at_once)
    body(Range{static_cast<std::size_t>(begin), static_cast<std::size_t>(std::min(begin + at_once, half_))});
}

/// What strips `first` to `last` are packed from, in the piece of the depth that begins at k.
Strassen::Ahead Strassen::ahead(const float* a, std::int64_t first, std::int64_t last, std::int64_t k) const {
  const std::int64_t row = first * tile_rows;
  const std::int64_t lines = std::min(last * tile_rows, rows_) - row, steps = std::min(2 * half_, depth_ - k);
  if (steps <= 0) return {};
  Ahead result{.from = a + row * a_.line + k * a_.step};
  result.row = std::max(a_.line, a_.step);
  result.lines = parts(a_.step == 1 ? steps : lines, floats_a_line);
  result.last = (a_.step == 1 ? lines : steps) * result.lines;
  return result;
}

void Strassen::multiply(std::int64_t strip, std::int64_t panel, std::int64_t k, const float* a, const float* b,
                        const float* bias, float* c, Ahead& next) const {
  const std::int64_t row = strip * tile_rows, column = panel * tile_columns;
  Tile tile{a, b, half_, nullptr, 0, c + row * columns_ + column, columns_, &next};
  if (k > 0) {
    tile.start = tile.c;
    tile.start_row = columns_;
  } else if (bias != nullptr) {
    tile.start = bias + column;
  }
  const std::int64_t rows = std::min(tile_rows, rows_ - row), columns = std::min(tile_columns, columns_ - column);
  if (rows == tile_rows && columns == tile_columns)
    multiply_tile(tile);
  else
    multiply_edge(tile, rows, columns);
}

/// Strips `first` to `last`, whose factors stay in the second-level cache, with all panels.
void Strassen::multiply_strips(const Operands& with, std::int64_t k, std::int64_t first, std::int64_t last,
                               float* factors, Ahead next) const {
  each_steps(128, [&](Range steps) {
    for (std::int64_t strip = first; strip < last; ++strip)
      pack_strip(with.a, strip, k, steps, factors + (strip - first) * strip_floats());
  });
  next.burst = next.last / (bursts * panels_ * (last - first)) + 1;
  for (std::int64_t panel = 0; panel < panels_; ++panel)
    for (std::int64_t strip = first; strip < last; ++strip)
      multiply(strip, panel, k, factors + (strip - first) * strip_floats(), with.panels + panel * panel_floats(),
               with.bias, with.c, next);
}

/// A thread's strips.
void Strassen::multiply_part(const Operands& with, std::int64_t k, Range strips, float* factors) const {
  const auto begin = static_cast<std::int64_t>(strips.begin), end = static_cast<std::int64_t>(strips.end);
  for (std::int64_t first = begin; first < end; first += strips_at_once) {
    const std::int64_t last = std::min(first + strips_at_once, end);
    const Ahead next = last < end ? ahead(with.a, last, std::min(last + strips_at_once, end), k)
                                  : ahead(with.a, begin, std::min(begin + strips_at_once, end), k + 2 * half_);
    multiply_strips(with, k, first, last, factors, next);
  }
}

void Strassen::run(const float* a, const float* b, const float* bias, float* c, std::byte* scratch) const {
  auto* const panels = reinterpret_cast<float*>(scratch);
  float* const strips = panels + panels_ * panel_floats();
  const auto workers = static_cast<std::size_t>(threads_);
  for (std::int64_t k = 0; k < depth_; k += 2 * half_) {
    parallel_for(threads_, static_cast<std::size_t>(panels_), [&](Range range) {
      for (auto panel = static_cast<std::int64_t>(range.begin); panel < static_cast<std::int64_t>(range.end); ++panel)
        each_steps(32, [&](Range steps) { pack_panel(b, panel, k, steps, panels + panel * panel_floats()); });
    });
    parallel_for(threads_, workers, [&](Range range) {
      for (std::size_t worker = range.begin; worker < range.end; ++worker)
        multiply_part({a, panels, bias, c}, k, part_of(static_cast<std::size_t>(strips_), worker, workers),
                      strips + static_cast<std::int64_t>(worker) * strips_at_once * strip_floats());
    });
  }
}

}  // namespace ronda::onednn
