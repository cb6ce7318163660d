#include <ronda/core/multiversion.hpp>
#include <ronda/layers/arithmetic.hpp>
#include <ronda/layers/onednn/channel_loops.hpp>

namespace ronda::onednn {
namespace {

/// The numbers of up to 16 channels, in registers.
struct Lanes {
  float value[16] = {};
  Lanes() = default;
  template <class Width>
  [[gnu::always_inline]] Lanes(const float* __restrict from, Width width) {
    each_lane(width, [&](std::int64_t l) RONDA_INLINE { value[l] = from[l]; });
  }
  template <class Width>
  [[gnu::always_inline]] void add_to(double* __restrict sums, Width width) const {
    each_lane(width, [&](std::int64_t l) RONDA_INLINE { sums[l] += double{value[l]}; });
  }
};

template <bool relu, LayerNumber T>
[[gnu::always_inline]] inline void normalize_piece(const T* __restrict x, T* __restrict y, const ChannelNorm& norm,
                                                   const Piece& piece) {
  by_lanes(piece.lanes, [&](std::int64_t lane, auto width) RONDA_INLINE {
    const Lanes mean(norm.mean + lane, width), factor(norm.factor + lane, width), bias(norm.bias + lane, width);
    for (std::int64_t at = lane; at < piece.positions * piece.lanes; at += piece.lanes)
      each_lane(width, [&](std::int64_t l) RONDA_INLINE {
        const float value = (as_float(x[at + l]) - mean.value[l]) * factor.value[l] + bias.value[l];
        y[at + l] = as_number<T>(relu ? rectified(value) : value);
      });
  });
}

template <bool relu, LayerNumber T>
[[gnu::always_inline]] inline void add_gradients_of_piece(const T* __restrict x, const T* __restrict dy,
                                                          const ChannelNorm& norm, const ChannelSums& sums,
                                                          const Piece& piece) {
  by_lanes(piece.lanes, [&](std::int64_t lane, auto width) RONDA_INLINE {
    const Lanes mean(norm.mean + lane, width), inverse(norm.inverse + lane, width), factor(norm.factor + lane, width),
        bias(norm.bias + lane, width);
    Lanes sum, along;
    for (std::int64_t at = lane; at < piece.positions * piece.lanes; at += piece.lanes)
      each_lane(width, [&](std::int64_t l) RONDA_INLINE {
        const float distance = as_float(x[at + l]) - mean.value[l];
        float gradient = as_float(dy[at + l]);
        if (relu) gradient = rectified_gradient(distance * factor.value[l] + bias.value[l], gradient);
        sum.value[l] += gradient;
        along.value[l] += gradient * (distance * inverse.value[l]);
      });
    sum.add_to(sums.first + lane, width);
    along.add_to(sums.second + lane, width);
  });
}

template <bool relu, LayerNumber T>
[[gnu::always_inline]] inline void write_gradients_of_piece(const T* __restrict x, const T* __restrict dy,
                                                            T* __restrict dx, const ChannelNorm& norm,
                                                            const float* constants, const float* slopes,
                                                            const Piece& piece) {
  by_lanes(piece.lanes, [&](std::int64_t lane, auto width) RONDA_INLINE {
    const Lanes mean(norm.mean + lane, width), factor(norm.factor + lane, width), bias(norm.bias + lane, width),
        constant(constants + lane, width), slope(slopes + lane, width);
    for (std::int64_t at = lane; at < piece.positions * piece.lanes; at += piece.lanes)
      each_lane(width, [&](std::int64_t l) RONDA_INLINE {
        const float distance = as_float(x[at + l]) - mean.value[l];
        float gradient = as_float(dy[at + l]);
        if (relu) gradient = rectified_gradient(distance * factor.value[l] + bias.value[l], gradient);
        dx[at + l] = as_number<T>(gradient * factor.value[l] - constant.value[l] - distance * slope.value[l]);
      });
  });
}

template <LayerNumber T>
[[gnu::always_inline]] inline void add_moments_of_piece(const T* __restrict x, const float* shift,
                                                        const ChannelSums& sums, const Piece& piece) {
  by_lanes(piece.lanes, [&](std::int64_t lane, auto width) RONDA_INLINE {
    const Lanes origin(shift + lane, width);
    Lanes sum, square;
    for (std::int64_t at = lane; at < piece.positions * piece.lanes; at += piece.lanes)
      each_lane(width, [&](std::int64_t l) RONDA_INLINE {
        const float distance = as_float(x[at + l]) - origin.value[l];
        sum.value[l] += distance;
        square.value[l] += distance * distance;
      });
    sum.add_to(sums.first + lane, width);
    square.add_to(sums.second + lane, width);
  });
}

}  // namespace

// Each once for each type of number: not every compiler makes several versions of a template.

RONDA_MULTIVERSION void add_moments(const float* x, const float* shift, const ChannelSums& sums, const Piece& piece) {
  add_moments_of_piece(x, shift, sums, piece);
}

RONDA_MULTIVERSION void normalize(const float* x, float* y, const ChannelNorm& norm, const Piece& piece) {
  if (norm.relu)
    normalize_piece<true>(x, y, norm, piece);
  else
    normalize_piece<false>(x, y, norm, piece);
}

RONDA_MULTIVERSION void add_gradients(const float* x, const float* dy, const ChannelNorm& norm, const ChannelSums& sums,
                                      const Piece& piece) {
  if (norm.relu)
    add_gradients_of_piece<true>(x, dy, norm, sums, piece);
  else
    add_gradients_of_piece<false>(x, dy, norm, sums, piece);
}

RONDA_MULTIVERSION void write_gradients(const float* x, const float* dy, float* dx, const ChannelNorm& norm,
                                        const float* constant, const float* slope, const Piece& piece) {
  if (norm.relu)
    write_gradients_of_piece<true>(x, dy, dx, norm, constant, slope, piece);
  else
    write_gradients_of_piece<false>(x, dy, dx, norm, constant, slope, piece);
}

RONDA_MULTIVERSION void add_moments(const BFloat16* x, const float* shift, const ChannelSums& sums,
                                    const Piece& piece) {
  add_moments_of_piece(x, shift, sums, piece);
}

RONDA_MULTIVERSION void normalize(const BFloat16* x, BFloat16* y, const ChannelNorm& norm, const Piece& piece) {
  if (norm.relu)
    normalize_piece<true>(x, y, norm, piece);
  else
    normalize_piece<false>(x, y, norm, piece);
}

RONDA_MULTIVERSION void add_gradients(const BFloat16* x, const BFloat16* dy, const ChannelNorm& norm,
                                      const ChannelSums& sums, const Piece& piece) {
  if (norm.relu)
    add_gradients_of_piece<true>(x, dy, norm, sums, piece);
  else
    add_gradients_of_piece<false>(x, dy, norm, sums, piece);
}

RONDA_MULTIVERSION void write_gradients(const BFloat16* x, const BFloat16* dy, BFloat16* dx, const ChannelNorm& norm,
                                        const float* constant, const float* slope, const Piece& piece) {
  if (norm.relu)
    write_gradients_of_piece<true>(x, dy, dx, norm, constant, slope, piece);
  else
    write_gradients_of_piece<false>(x, dy, dx, norm, constant, slope, piece);
}

}  // namespace ronda::onednn
