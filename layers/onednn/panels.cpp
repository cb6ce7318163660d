#include <ronda/core/multiversion.hpp>
#include <ronda/layers/arithmetic.hpp>
#include <ronda/layers/onednn/panels.hpp>
#include <ronda/layers/onednn/processor.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>

namespace ronda::onednn {
namespace {

constexpr std::int64_t panel_width = Panels::width;
constexpr std::int64_t tile_rows = 6;  ///< rows whose sums stay in registers
constexpr std::int64_t input_chunk =
    NonZeros::chunk;  ///< inputs whose weights (16 KiB) wait in the first-level cache for all samples

/// A product as `Panels` says it. Rows of b and c are 64 numbers long and lie one after another, aligned.
struct Product {
  const float* a;
  std::int64_t a_row;  ///< from one row of a to the next
  const float* b;
  float* c;
  std::int64_t rows, depth;
  bool add;            ///< to what c holds
  const float* ahead;  ///< what is fetched meanwhile: 64 numbers a row
};

#if defined(__x86_64__)
// Written out, since compilers move the sums to memory and back when they are left to vectorise this (10 % slower).

/// A few rows of a product: 24 registers of sums, 4 of b, one of a.
template <int rows>
[[gnu::target("avx512f"), gnu::always_inline]] inline void multiply_tile(const Product& p, std::int64_t row) {
  constexpr int lanes = 16, vectors = panel_width / lanes;
  const float *a = p.a + row * p.a_row, *b = p.b, *ahead = p.ahead + row * panel_width;
  float* c = p.c + row * panel_width;
  __m512 sum[rows][vectors];
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v)
      sum[r][v] = p.add ? _mm512_load_ps(c + r * panel_width + v * lanes) : _mm512_setzero_ps();
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < p.depth; ++k) {
    if (k < rows * vectors) __builtin_prefetch(ahead + k * lanes);
    __m512 row_of_b[vectors];
    for (int v = 0; v < vectors; ++v) row_of_b[v] = _mm512_load_ps(b + k * panel_width + v * lanes);
    for (int r = 0; r < rows; ++r) {
      const __m512 element = _mm512_set1_ps(a[r * p.a_row + k]);
      for (int v = 0; v < vectors; ++v) sum[r][v] = _mm512_fmadd_ps(element, row_of_b[v], sum[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) _mm512_store_ps(c + r * panel_width + v * lanes, sum[r][v]);
}

[[gnu::target("avx512f")]] void multiply_avx512(const Product& p) {
  std::int64_t row = 0;
  for (; row + tile_rows <= p.rows; row += tile_rows) multiply_tile<tile_rows>(p, row);
  switch (p.rows - row) {
    case 1: return multiply_tile<1>(p, row);
    case 2: return multiply_tile<2>(p, row);
    case 3: return multiply_tile<3>(p, row);
    case 4: return multiply_tile<4>(p, row);
    case 5: return multiply_tile<5>(p, row);
    default: return;
  }
}

/// Sixteen columns of a few rows, which sixteen registers are enough for: 12 of sums, 2 of b, one of a.
template <int rows>
[[gnu::target("avx2,fma"), gnu::always_inline]] inline void multiply_columns(const Product& p, std::int64_t row,
                                                                             std::int64_t column) {
  constexpr int lanes = 8, vectors = 2;
  const float *a = p.a + row * p.a_row, *b = p.b + column, *ahead = p.ahead + row * panel_width + column;
  float* c = p.c + row * panel_width + column;
  __m256 sum[rows][vectors];
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v)
      sum[r][v] = p.add ? _mm256_load_ps(c + r * panel_width + v * lanes) : _mm256_setzero_ps();
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < p.depth; ++k) {
    if (k < rows) __builtin_prefetch(ahead + k * panel_width);
    __m256 row_of_b[vectors];
    for (int v = 0; v < vectors; ++v) row_of_b[v] = _mm256_load_ps(b + k * panel_width + v * lanes);
    for (int r = 0; r < rows; ++r) {
      const __m256 element = _mm256_set1_ps(a[r * p.a_row + k]);
      for (int v = 0; v < vectors; ++v) sum[r][v] = _mm256_fmadd_ps(element, row_of_b[v], sum[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) _mm256_store_ps(c + r * panel_width + v * lanes, sum[r][v]);
}

template <int rows>
[[gnu::target("avx2,fma")]] void multiply_rows(const Product& p, std::int64_t row) {
  for (std::int64_t column = 0; column < panel_width; column += 16) multiply_columns<rows>(p, row, column);
}

[[gnu::target("avx2,fma")]] void multiply_avx2(const Product& p) {
  std::int64_t row = 0;
  for (; row + tile_rows <= p.rows; row += tile_rows) multiply_rows<tile_rows>(p, row);
  if (row + 4 <= p.rows) {
    multiply_rows<4>(p, row);
    row += 4;
  }
  for (; row < p.rows; ++row) multiply_rows<1>(p, row);
}

void multiply(const Product& p) { return has_avx512() ? multiply_avx512(p) : multiply_avx2(p); }
#else
void multiply(const Product&) {}  // `suit_processor` says no
#endif

/// to[column, row] = from[row, column]; strides from one row to the next.
RONDA_MULTIVERSION void transpose(const float* __restrict from, std::int64_t from_row, std::int64_t rows,
                                  std::int64_t columns, float* __restrict to, std::int64_t to_row) {
  constexpr std::int64_t line = 16;
  for (std::int64_t begin = 0; begin < columns; begin += line) {
    const std::int64_t end = std::min(begin + line, columns);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = begin; column < end; ++column)
        to[column * to_row + row] = from[row * from_row + column];
  }
}

constexpr std::int64_t whole(std::int64_t count) { return (count + panel_width - 1) / panel_width; }

}  // namespace

bool Panels::suit_processor() noexcept { return has_avx512() || has_avx2(); }

Panels::Panels(std::int64_t batch, std::int64_t inputs, std::int64_t outputs, bool relu, int threads)
    : inputs_not_zero_(batch, inputs),
      batch_(batch),
      inputs_(inputs),
      outputs_(outputs),
      panels_(whole(outputs)),
      groups_(whole(batch)),
      relu_(relu),
      threads_(threads) {}

TensorDesc Panels::weight() const {
  return {Shape{outputs_, inputs_}, DType::float32,
          Layout(std::array{0, 1}, std::array{Layout::Block{0, panel_width}})};
}

std::size_t Panels::scratch_bytes() const noexcept {
  return static_cast<std::size_t>(floats_before_marks()) * sizeof(float) + inputs_not_zero_.bytes();
}

std::int64_t Panels::floats_before_marks() const noexcept {
  const std::int64_t panels_of_samples = threads_ * batch_ * panel_width;
  return whole(std::max(panels_of_samples + inputs_ * batch_, groups_ * (inputs_ + outputs_) * panel_width)) *
         panel_width;
}

/// Of the outputs in a panel, those that are no padding.
std::int64_t Panels::columns_of(std::int64_t panel) const noexcept {
  return std::min(panel_width, outputs_ - panel * panel_width);
}

/// Calls body(panel, memory for batch × 64 numbers) for every panel; each thread has memory of its own.
template <class Body>
void Panels::for_each_panel(float* memory, Body&& body) const {
  const auto workers = static_cast<std::size_t>(threads_);
  parallel_for(threads_, workers, [&](Range range) {
    for (std::size_t worker = range.begin; worker < range.end; ++worker) {
      const Range mine = part_of(static_cast<std::size_t>(panels_), worker, workers);
      for (std::size_t panel = mine.begin; panel < mine.end; ++panel)
        body(static_cast<std::int64_t>(panel), memory + static_cast<std::int64_t>(worker) * batch_ * panel_width);
    }
  });
}

void Panels::forward(const float* x, const float* w, const float* bias, float* y, std::byte* scratch) const {
  auto* const marks = reinterpret_cast<std::uint64_t*>(reinterpret_cast<float*>(scratch) + floats_before_marks());
  const bool few = inputs_not_zero_.mark_rows(x, marks);
  for_each_panel(reinterpret_cast<float*>(scratch), [&](std::int64_t panel, float* sums) {
    const std::int64_t columns = columns_of(panel);
    std::fill_n(sums, panel_width, 0.0F);
    if (bias != nullptr) std::copy_n(bias + panel * panel_width, columns, sums);
    for (std::int64_t sample = 1; sample < batch_; ++sample)
      std::copy_n(sums, panel_width, sums + sample * panel_width);
    for (std::int64_t input = 0; input < inputs_; input += input_chunk) {
      const float* weights = w + (panel * inputs_ + input) * panel_width;
      if (few)
        inputs_not_zero_.add_rows(x, marks, input, weights, sums);
      else
        multiply({x + input, inputs_, weights, sums, batch_, std::min(input_chunk, inputs_ - input), true,
                  weights + input_chunk * panel_width});
    }
    for (std::int64_t sample = 0; sample < batch_; ++sample)
      for (std::int64_t column = 0; column < columns; ++column) {
        const float sum = sums[sample * panel_width + column];
        y[sample * outputs_ + panel * panel_width + column] = relu_ ? rectified(sum) : sum;
      }
  });
}

void Panels::backward_weights(const float* x, const float* dz, float* dw, std::byte* scratch) const {
  auto* columns_of_dz = reinterpret_cast<float*>(scratch);
  float* const transposed_x = columns_of_dz + threads_ * batch_ * panel_width;
  auto* const marks = reinterpret_cast<std::uint32_t*>(columns_of_dz + floats_before_marks());
  const bool few = inputs_not_zero_.mark_columns(x, marks);
  if (!few)
    parallel_for(
        threads_, static_cast<std::size_t>(inputs_),
        [&](Range range) {
          const auto begin = static_cast<std::int64_t>(range.begin);
          transpose(x + begin, inputs_, batch_, static_cast<std::int64_t>(range.size()), transposed_x + begin * batch_,
                    batch_);
        },
        16);
  for_each_panel(columns_of_dz, [&](std::int64_t panel, float* gradients) {
    const std::int64_t columns = columns_of(panel);
    for (std::int64_t sample = 0; sample < batch_; ++sample) {
      float* const row = gradients + sample * panel_width;
      std::fill(std::copy_n(dz + sample * outputs_ + panel * panel_width, columns, row), row + panel_width, 0.0F);
    }
    float* const out = dw + panel * inputs_ * panel_width;
    if (few)
      inputs_not_zero_.multiply_columns(x, marks, gradients, out);
    else
      multiply({transposed_x, batch_, gradients, out, inputs_, batch_, false, out + tile_rows * panel_width});
  });
}

void Panels::backward_data(const float* dz, const float* w, float* dx, std::byte* scratch) const {
  auto* const transposed_dz = reinterpret_cast<float*>(scratch);  // (groups, outputs, 64)
  float* const transposed_dx = transposed_dz + groups_ * outputs_ * panel_width;
  const auto samples_of = [&](std::int64_t group) { return std::min(panel_width, batch_ - group * panel_width); };
  if (batch_ % panel_width != 0) std::fill_n(transposed_dx - outputs_ * panel_width, outputs_ * panel_width, 0.0F);
  parallel_for(
      threads_, static_cast<std::size_t>(outputs_),
      [&](Range range) {
        const auto begin = static_cast<std::int64_t>(range.begin), count = static_cast<std::int64_t>(range.size());
        for (std::int64_t group = 0; group < groups_; ++group)
          transpose(dz + group * panel_width * outputs_ + begin, outputs_, samples_of(group), count,
                    transposed_dz + (group * outputs_ + begin) * panel_width, panel_width);
      },
      16);
  parallel_for(
      threads_, static_cast<std::size_t>(inputs_),
      [&](Range range) {
        const auto begin = static_cast<std::int64_t>(range.begin), count = static_cast<std::int64_t>(range.size());
        for (std::int64_t panel = 0; panel < panels_; ++panel)
          for (std::int64_t group = 0; group < groups_; ++group) {
            const float* weights = w + (panel * inputs_ + begin) * panel_width;
            multiply({weights, panel_width, transposed_dz + (group * outputs_ + panel * panel_width) * panel_width,
                      transposed_dx + (group * inputs_ + begin) * panel_width, count, columns_of(panel), panel > 0,
                      weights + tile_rows * panel_width});
          }
        for (std::int64_t group = 0; group < groups_; ++group)
          transpose(transposed_dx + (group * inputs_ + begin) * panel_width, panel_width, count, samples_of(group),
                    dx + group * panel_width * inputs_ + begin, inputs_);
      },
      tile_rows);
}

}  // namespace ronda::onednn
