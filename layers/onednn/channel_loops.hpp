#pragma once
#include <algorithm>
#include <cstdint>

#include <ronda/core/parallel.hpp>
#include <ronda/layers/onednn/images.hpp>

/// The loops of a batch norm, for pieces of memory in which `positions` follow each other, each with a vector of
/// `lanes` channels. What belongs to channels are arrays as long.
namespace ronda::onednn {

/// What channels are normalised by: y = (x − mean) · factor + bias, and then, if so, max(y, 0).
struct ChannelNorm {
  const float *mean, *inverse;  ///< of the values, and of their deviation
  const float *factor, *bias;   ///< inverse · weight, or inverse where there is none; 0 where there is none
  bool relu;
  [[nodiscard]] ChannelNorm from(std::int64_t channel) const noexcept {
    return {mean + channel, inverse + channel, factor + channel, bias + channel, relu};
  }
};

/// Two sums of each channel, in float64 so that pieces add up exactly enough.
struct ChannelSums {
  double *first, *second;
  [[nodiscard]] ChannelSums from(std::int64_t channel) const noexcept { return {first + channel, second + channel}; }
};

struct Piece {
  std::int64_t positions, lanes;
};

/// Adds x − shift and its square. The closer the shift to the mean, the less of the squares cancels later.
void add_moments(const float* x, const float* shift, const ChannelSums& sums, const Piece& piece);
void add_moments(const BFloat16* x, const float* shift, const ChannelSums& sums, const Piece& piece);
void normalize(const float* x, float* y, const ChannelNorm& norm, const Piece& piece);
void normalize(const BFloat16* x, BFloat16* y, const ChannelNorm& norm, const Piece& piece);
/// Adds the gradient before the ReLU, dz, and dz · (x − mean) · inverse.
void add_gradients(const float* x, const float* dy, const ChannelNorm& norm, const ChannelSums& sums,
                   const Piece& piece);
void add_gradients(const BFloat16* x, const BFloat16* dy, const ChannelNorm& norm, const ChannelSums& sums,
                   const Piece& piece);
/// dx = dz · factor − constant − (x − mean) · slope.
void write_gradients(const float* x, const float* dy, float* dx, const ChannelNorm& norm, const float* constant,
                     const float* slope, const Piece& piece);
void write_gradients(const BFloat16* x, const BFloat16* dy, BFloat16* dx, const ChannelNorm& norm,
                     const float* constant, const float* slope, const Piece& piece);

/// Calls body(offset of the piece, its first channel, piece) for all samples of a range whose weight is not 0; null:
/// for all. A piece is short enough for float32 sums of it, and for a second vector of its channels to find it in a
/// cache.
template <class Body>
void each_piece(const Images& images, Range samples, const float* weights, Body body) {
  const std::int64_t lanes = images.lanes, longest = std::clamp<std::int64_t>((1 << 14) / lanes, 16, 128);
  const auto cut = [&](std::int64_t at, std::int64_t channel, std::int64_t positions) {
    for (std::int64_t p = 0; p < positions; p += longest)
      body(at + p * lanes, channel, Piece{std::min(longest, positions - p), lanes});
  };
  const auto counts = [&](std::size_t sample) { return weights == nullptr || weights[sample] != 0; };
  for (std::size_t begin = samples.begin, end = begin; begin < samples.end; begin = end) {
    for (end = begin + 1; end < samples.end && counts(end) == counts(begin);) ++end;
    if (!counts(begin)) continue;
    const std::int64_t size = images.image_size(), first = static_cast<std::int64_t>(begin) * images.groups;
    if (images.groups == 1)
      cut(first * size, 0, static_cast<std::int64_t>(end - begin) * images.positions());
    else
      for (std::int64_t image = first; image < static_cast<std::int64_t>(end) * images.groups; ++image)
        cut(image * size, image % images.groups * lanes, images.positions());
  }
}

}  // namespace ronda::onednn
