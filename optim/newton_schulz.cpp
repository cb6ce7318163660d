#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/optim/newton_schulz.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

constexpr std::size_t tile_rows = 4, tile = 32;  // of a product's part that is summed in registers

[[nodiscard]] std::size_t padded(std::size_t extent) { return (extent + tile - 1) / tile * tile; }

/// result = product_factor · left · right + more_factor · more, row-major; `more` may be `result`, or null.
struct Product {
  const float *left, *right;
  float* result;
  std::size_t inner, columns;
  float product_factor = 1, more_factor = 0;
  const float* more = nullptr;
};

/// Rows [begin, end), whole tiles. Each element is summed along the inner axis.
RONDA_MULTIVERSION void multiply_rows(const Product& p, std::size_t begin, std::size_t end) {
  for (std::size_t column = 0; column < p.columns; column += tile)
    for (std::size_t row = begin; row < end; row += tile_rows) {
      float sums[tile_rows][tile] = {};
      const float* const left = p.left + row * p.inner;
      const float* right = p.right + column;
      for (std::size_t k = 0; k < p.inner; ++k, right += p.columns)
        for (std::size_t r = 0; r < tile_rows; ++r)
          for (std::size_t c = 0; c < tile; ++c) sums[r][c] += left[r * p.inner + k] * right[c];
      for (std::size_t r = 0; r < tile_rows; ++r) {
        const std::size_t at = (row + r) * p.columns + column;
        for (std::size_t c = 0; c < tile; ++c)
          p.result[at + c] =
              p.product_factor * sums[r][c] + (p.more == nullptr ? 0.0F : p.more_factor * p.more[at + c]);
      }
    }
}

void multiply(const Product& product, std::size_t rows, Stream& stream) {
  constexpr std::size_t least_work = 1 << 18;  // multiplications of a thread
  const std::size_t tiles = rows / tile_rows,
                    work = std::max<std::size_t>(tile_rows * product.inner * product.columns, 1);
  parallel_for(
      stream.threads(), tiles,
      [&](Range part) { multiply_rows(product, part.begin * tile_rows, part.end * tile_rows); },
      std::max<std::size_t>(least_work / work, 1));
}

}  // namespace

void NewtonSchulz::reserve(std::size_t rows, std::size_t columns) {
  const std::size_t shorter = padded(std::min(rows, columns)), longer = padded(std::max(rows, columns));
  for (auto* buffer : {&x_, &y_}) buffer->resize(std::max(buffer->size(), shorter * longer));
  for (auto* buffer : {&a_, &b_}) buffer->resize(std::max(buffer->size(), shorter * shorter));
}

void NewtonSchulz::operator()(float* matrix, std::size_t rows, std::size_t columns, double norm, Stream& stream) {
  constexpr float a = 3.4445F, b = -4.775F, c = 2.0315F;
  const bool turned = rows > columns;
  const std::size_t shorter = padded(std::min(rows, columns)), longer = padded(std::max(rows, columns));
  const auto place = [&](std::size_t row, std::size_t column) {
    return turned ? column * longer + row : row * longer + column;
  };
  const auto divisor = static_cast<float>(norm + 1e-7);
  std::fill_n(x_.begin(), shorter * longer, 0.0F);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column)
      x_[place(row, column)] = matrix[row * columns + column] / divisor;
  for (int step = 0; step < 5; ++step) {
    float *x = x_.data(), *y = y_.data();
    for (std::size_t i = 0; i < shorter; ++i)
      for (std::size_t k = 0; k < longer; ++k) y[k * shorter + i] = x[i * longer + k];
    multiply({x, y, a_.data(), longer, shorter}, shorter, stream);
    multiply({a_.data(), a_.data(), b_.data(), shorter, shorter, c, b, a_.data()}, shorter, stream);
    multiply({b_.data(), x, y, shorter, longer, 1, a, x}, shorter, stream);
    std::swap(x_, y_);
  }
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t column = 0; column < columns; ++column) matrix[row * columns + column] = x_[place(row, column)];
}

}  // namespace ronda
