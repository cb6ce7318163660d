#include <ronda/core/multiversion.hpp>
#include <ronda/data/detail/resample.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ronda {
namespace {

using Four = float __attribute__((vector_size(16)));
using Eight = float __attribute__((vector_size(32)));

RONDA_MULTIVERSION void write_floats(const std::uint8_t* __restrict bytes, std::int64_t count, float* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(bytes[i]);
}

/// Each pixel of `to` is a sum of `taps` of a row's; `row` begins with pixel `low`, and a number may be read behind it.
RONDA_MULTIVERSION void filter_across(const float* row, std::int64_t low, const std::int64_t* first,
                                      const float* weights, std::int64_t taps, std::int64_t size, float* to) {
  constexpr std::int64_t step = Picture::channels;
  for (std::int64_t x = 0; x < size; ++x, weights += taps, to += step) {
    const float* pixel = row + (first[x] - low) * step;
    Four sums{};  // the last counts for nothing
    for (std::int64_t tap = 0; tap < taps; ++tap, pixel += step) {
      Four numbers;
      std::memcpy(&numbers, pixel, sizeof(numbers));
      sums += weights[tap] * numbers;
    }
    std::memcpy(to, &sums, step * sizeof(float));
  }
}

/// A row of the result: the sum of `taps` rows of `count` numbers, as a part of 255.
RONDA_MULTIVERSION void filter_down(const float* rows, const float* weights, std::int64_t taps, std::int64_t count,
                                    float* to) {
  constexpr std::int64_t width = 8;
  std::int64_t i = 0;
  for (; i + width <= count; i += width) {
    Eight sums{};
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      Eight numbers;
      std::memcpy(&numbers, rows + tap * count + i, sizeof(numbers));
      sums += weights[tap] * numbers;
    }
    sums /= 255.0F;
    std::memcpy(to + i, &sums, sizeof(sums));
  }
  for (; i < count; ++i) {
    float sum = 0;
    for (std::int64_t tap = 0; tap < taps; ++tap) sum += weights[tap] * rows[tap * count + i];
    to[i] = sum / 255;
  }
}

}  // namespace

void Resampler::Filter::prepare(const ResampleAxis& axis, std::int64_t size) {
  const double reach = std::max(axis.scale, 1.0);  // of the triangle, to each side
  const std::int64_t available = axis.high - axis.low;
  taps = std::min(static_cast<std::int64_t>(std::ceil(2 * reach)), available);  // whose middles are within
  first.resize(static_cast<std::size_t>(size));
  weights.assign(static_cast<std::size_t>(size * taps), 0.0F);
  for (std::int64_t i = 0; i < size; ++i) {
    const double middle = axis.begin + (static_cast<double>(i) + 0.5) * axis.scale;
    const auto begin =
        std::clamp(static_cast<std::int64_t>(std::ceil(middle - reach - 0.5)), axis.low, axis.high - taps);
    first[static_cast<std::size_t>(i)] = begin;
    float* const mine = weights.data() + i * taps;
    double sum = 0;
    const auto weight = [&](std::int64_t tap) {
      const double distance = std::abs(static_cast<double>(begin + tap) + 0.5 - middle);
      return std::max(0.0, 1 - distance / reach);
    };
    for (std::int64_t tap = 0; tap < taps; ++tap) sum += weight(tap);
    for (std::int64_t tap = 0; tap < taps; ++tap) mine[tap] = static_cast<float>(weight(tap) / sum);
  }
  low = *std::ranges::min_element(first);
  high = *std::ranges::max_element(first) + taps;
}

void Resampler::across(Picture& source, std::int64_t size) {
  const std::int64_t bytes = (columns_.high - columns_.low) * Picture::channels, floats = size * Picture::channels;
  rows_across_.resize(static_cast<std::size_t>((rows_.high - rows_.low) * floats));
  row_.resize(static_cast<std::size_t>(bytes + 1));
  float* to = rows_across_.data();
  for (std::int64_t y = rows_.low; y < rows_.high; ++y, to += floats) {
    write_floats(source.row(y) + (columns_.low - source.part.left) * Picture::channels, bytes, row_.data());
    filter_across(row_.data(), columns_.low, columns_.first.data(), columns_.weights.data(), columns_.taps, size, to);
  }
}

void Resampler::operator()(Picture& source, const ResampleAxis& vertical, const ResampleAxis& horizontal,
                           std::int64_t size, float* result) {
  rows_.prepare(vertical, size);
  columns_.prepare(horizontal, size);
  across(source, size);
  const std::int64_t floats = size * Picture::channels;
  for (std::int64_t y = 0; y < size; ++y)
    filter_down(rows_across_.data() + (rows_.first[static_cast<std::size_t>(y)] - rows_.low) * floats,
                rows_.weights.data() + y * rows_.taps, rows_.taps, floats, result + y * floats);
}

}  // namespace ronda
