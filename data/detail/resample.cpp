#include <ronda/data/detail/resample.hpp>

#include <algorithm>
#include <cmath>

namespace ronda {

void Resampler::Filter::prepare(const ResampleAxis& axis, std::int64_t size) {
  const double reach = std::max(axis.scale, 1.0);  // of the triangle, to each side
  const std::int64_t available = axis.high - axis.low;
  taps = std::min(2 * static_cast<std::int64_t>(std::ceil(reach)) + 1, available);
  first.resize(static_cast<std::size_t>(size));
  weights.assign(static_cast<std::size_t>(size * taps), 0.0F);
  for (std::int64_t i = 0; i < size; ++i) {
    const double middle = axis.begin + (static_cast<double>(i) + 0.5) * axis.scale;
    const auto begin = std::clamp<std::int64_t>(std::llround(middle - reach), axis.low, axis.high - taps);
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
}

void Resampler::across(Picture& source, std::int64_t size) {
  constexpr std::int64_t channels = Picture::channels;
  const std::int64_t first = *std::ranges::min_element(rows_.first),
                     last = *std::ranges::max_element(rows_.first) + rows_.taps;
  rows_across_.resize(static_cast<std::size_t>((last - first) * size * channels));
  float* to = rows_across_.data();
  for (std::int64_t y = first; y < last; ++y) {
    const std::uint8_t* const row = source.row(y);
    for (std::int64_t x = 0; x < size; ++x) {
      const float* const weights = columns_.weights.data() + x * columns_.taps;
      const std::uint8_t* pixel = row + columns_.first[static_cast<std::size_t>(x)] * channels;
      float red = 0, green = 0, blue = 0;
      for (std::int64_t tap = 0; tap < columns_.taps; ++tap, pixel += channels) {
        red += weights[tap] * static_cast<float>(pixel[0]);
        green += weights[tap] * static_cast<float>(pixel[1]);
        blue += weights[tap] * static_cast<float>(pixel[2]);
      }
      *to++ = red;
      *to++ = green;
      *to++ = blue;
    }
  }
}

void Resampler::operator()(Picture& source, const ResampleAxis& vertical, const ResampleAxis& horizontal,
                           std::int64_t size, float* result) {
  rows_.prepare(vertical, size);
  columns_.prepare(horizontal, size);
  across(source, size);
  const std::int64_t first = *std::ranges::min_element(rows_.first), floats = size * Picture::channels;
  for (std::int64_t y = 0; y < size; ++y) {
    float* const row = result + y * floats;
    std::fill_n(row, floats, 0.0F);
    for (std::int64_t tap = 0; tap < rows_.taps; ++tap) {
      const float weight = rows_.weights[static_cast<std::size_t>(y * rows_.taps + tap)];
      const float* const from = rows_across_.data() + (rows_.first[static_cast<std::size_t>(y)] + tap - first) * floats;
      for (std::int64_t i = 0; i < floats; ++i) row[i] += weight * from[i];
    }
    for (std::int64_t i = 0; i < floats; ++i) row[i] /= 255;
  }
}

}  // namespace ronda
