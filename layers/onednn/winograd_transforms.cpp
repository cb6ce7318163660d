#include <ronda/layers/onednn/window_maximum.hpp>
#include <ronda/layers/onednn/winograd_kernels.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>

namespace ronda::onednn::winograd {

#if defined(__x86_64__)
#define RONDA_AVX512 [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl")]]
#define RONDA_AVX512_INLINE [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl"), gnu::always_inline]] inline

namespace {

using Sixteen = __m512;

// The transforms interpolate at 0, ±p, ±q and infinity. With 1 and 2, the paper's, rounding is twice as much.

constexpr float p = 0.625F, q = 1.5F, p2 = p * p, q2 = q * q;
constexpr float scale_0 = 1 / (p2 * q2), scale_p = 1 / (2 * p2 * (p2 - q2)), scale_q = 1 / (2 * q2 * (q2 - p2));

RONDA_AVX512_INLINE Sixteen all(float x) { return _mm512_set1_ps(x); }
RONDA_AVX512_INLINE Sixteen add_product(float x, Sixteen y, Sixteen sum) { return _mm512_fmadd_ps(all(x), y, sum); }
RONDA_AVX512_INLINE Sixteen times(float x, Sixteen y) { return _mm512_mul_ps(all(x), y); }
RONDA_AVX512_INLINE Sixteen plus(Sixteen x, Sixteen y) { return _mm512_add_ps(x, y); }
RONDA_AVX512_INLINE Sixteen minus(Sixteen x, Sixteen y) { return _mm512_sub_ps(x, y); }

/// Bᵀ d
RONDA_AVX512_INLINE void input_line(const Sixteen (&d)[6], Sixteen (&to)[6]) {
  const Sixteen even_p = add_product(-q2, d[2], d[4]), odd_p = add_product(-q2, d[1], d[3]);
  const Sixteen even_q = add_product(-p2, d[2], d[4]), odd_q = add_product(-p2, d[1], d[3]);
  to[0] = add_product(p2 * q2, d[0], add_product(-(p2 + q2), d[2], d[4]));
  to[1] = add_product(p, odd_p, even_p);
  to[2] = add_product(-p, odd_p, even_p);
  to[3] = add_product(q, odd_q, even_q);
  to[4] = add_product(-q, odd_q, even_q);
  to[5] = add_product(p2 * q2, d[1], add_product(-(p2 + q2), d[3], d[5]));
}
/// Aᵀ m
RONDA_AVX512_INLINE void output_line(const Sixteen (&m)[6], Sixteen (&to)[4]) {
  const Sixteen even_p = plus(m[1], m[2]), odd_p = minus(m[1], m[2]);
  const Sixteen even_q = plus(m[3], m[4]), odd_q = minus(m[3], m[4]);
  to[0] = plus(plus(m[0], even_p), even_q);
  to[1] = add_product(p, odd_p, times(q, odd_q));
  to[2] = add_product(p2, even_p, times(q2, even_q));
  to[3] = add_product(p2 * p, odd_p, add_product(q2 * q, odd_q, m[5]));
}
/// A dy
RONDA_AVX512_INLINE void gradient_line(const Sixteen (&dy)[4], Sixteen (&to)[6]) {
  const Sixteen even_p = add_product(p2, dy[2], dy[0]), odd_p = add_product(p2, dy[3], dy[1]);
  const Sixteen even_q = add_product(q2, dy[2], dy[0]), odd_q = add_product(q2, dy[3], dy[1]);
  to[0] = dy[0];
  to[1] = add_product(p, odd_p, even_p);
  to[2] = add_product(-p, odd_p, even_p);
  to[3] = add_product(q, odd_q, even_q);
  to[4] = add_product(-q, odd_q, even_q);
  to[5] = dy[3];
}
/// G w
RONDA_AVX512_INLINE void weight_line(const Sixteen (&w)[3], Sixteen (&to)[6]) {
  const Sixteen even_p = add_product(p2 * scale_p, w[2], times(scale_p, w[0])), odd_p = times(p * scale_p, w[1]);
  const Sixteen even_q = add_product(q2 * scale_q, w[2], times(scale_q, w[0])), odd_q = times(q * scale_q, w[1]);
  to[0] = times(scale_0, w[0]);
  to[1] = plus(even_p, odd_p);
  to[2] = minus(even_p, odd_p);
  to[3] = plus(even_q, odd_q);
  to[4] = minus(even_q, odd_q);
  to[5] = w[2];
}
/// Gᵀ u
RONDA_AVX512_INLINE void weight_gradient_line(const Sixteen (&u)[6], Sixteen (&to)[3]) {
  const Sixteen even_p = times(scale_p, plus(u[1], u[2])), odd_p = times(scale_p, minus(u[1], u[2]));
  const Sixteen even_q = times(scale_q, plus(u[3], u[4])), odd_q = times(scale_q, minus(u[3], u[4]));
  to[0] = add_product(scale_0, u[0], plus(even_p, even_q));
  to[1] = add_product(p, odd_p, times(q, odd_q));
  to[2] = add_product(p2, even_p, add_product(q2, even_q, u[5]));
}

/// Sixteen channels of a tile, or of something else that is square; steps in floats.
struct Whole {
  const float* start;
  std::int64_t down, right;
  RONDA_AVX512_INLINE Sixteen at(int i, int j) const { return _mm512_load_ps(start + i * down + j * right); }
};
/// Zeros outside of the image.
struct Edge {
  const float* start;
  std::int64_t down, right;
  const std::uint16_t* inside;  ///< a mask for each element of a patch
  RONDA_AVX512_INLINE Sixteen at(int i, int j) const {
    return _mm512_maskz_load_ps(inside[i * patch_size + j], start + i * down + j * right);
  }
};

/// to = M from Mᵀ for the matrix M that `line` multiplies with.
template <int n, int m, void (&line)(const Sixteen (&)[n], Sixteen (&)[m]), class Source>
RONDA_AVX512_INLINE void both_ways(const Source& from, Sixteen (&to)[m][m]) {
  Sixteen half[m][n];
#pragma GCC unroll 6
  for (int j = 0; j < n; ++j) {
    Sixteen column[n], result[m];
#pragma GCC unroll 6
    for (int i = 0; i < n; ++i) column[i] = from.at(i, j);
    line(column, result);
#pragma GCC unroll 6
    for (int i = 0; i < m; ++i) half[i][j] = result[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < m; ++i) line(half[i], to[i]);
}

template <int n>
RONDA_AVX512_INLINE void store_all(const Sixteen (&from)[n][n], float* to, std::int64_t down, std::int64_t right) {
#pragma GCC unroll 6
  for (int i = 0; i < n; ++i)
#pragma GCC unroll 6
    for (int j = 0; j < n; ++j) _mm512_store_ps(to + i * down + j * right, from[i][j]);
}

/// Where sixteen channels of a tile lie: its element (i, j) at data[i * down + j * right].
struct Place {
  std::int64_t offset;
  std::int64_t down, right;
  std::int64_t top, bottom, left, end;  ///< of the tile, the rows and columns inside of the image

  [[nodiscard]] bool is_whole(std::int64_t size) const {
    return top == 0 && left == 0 && bottom == size && end == size;
  }
};

/// @param above, before  by how much tiles of `size` start before multiples of the output's tiles
Place place_of(const WinogradTiling& t, const Images& images, std::int64_t tile, std::int64_t size, std::int64_t above,
               std::int64_t before) {
  const std::int64_t sample = tile / (t.down * t.right), row = tile / t.right % t.down * tile_size - above,
                     column = tile % t.right * tile_size - before;
  return {sample * images.groups * images.image_size() + (row * images.width + column) * images.lanes,
          images.width * images.lanes,
          images.lanes,
          std::max<std::int64_t>(-row, 0),
          std::min(size, images.height - row),
          std::max<std::int64_t>(-column, 0),
          std::min(size, images.width - column)};
}

/// Where a sixteen of channels starts in a sample.
std::int64_t channels_at(const Images& images, std::int64_t sixteen) {
  const std::int64_t channel = sixteen * vector;
  return channel / images.lanes * images.image_size() + channel % images.lanes;
}

/// Transforms a tile of all channels to (channels / 16, 36, 16).
/// @param next  fetched meanwhile
template <int size, void (&line)(const Sixteen (&)[size], Sixteen (&)[6])>
RONDA_AVX512_INLINE void transform_tile(const Images& images, const Place& at, const Place& next, const float* data,
                                        std::int64_t sixteens, float* to) {
  const bool whole = at.is_whole(size);
  std::uint16_t inside[patch_size * patch_size];
  if (!whole)
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j)
        inside[i * patch_size + j] = i >= at.top && i < at.bottom && j >= at.left && j < at.end ? 0xffff : 0;
  for (std::int64_t sixteen = 0; sixteen < sixteens; ++sixteen) {
    const std::int64_t channels = channels_at(images, sixteen);
    const float *from = data + (at.offset + channels), *ahead = data + (next.offset + channels);
#pragma GCC unroll 6
    for (int i = 0; i < size; ++i)
#pragma GCC unroll 6
      for (int j = 0; j < size; ++j) __builtin_prefetch(ahead + i * at.down + j * at.right);
    Sixteen result[6][6];
    if (whole)
      both_ways<size, 6, line>(Whole{from, at.down, at.right}, result);
    else
      both_ways<size, 6, line>(Edge{from, at.down, at.right, inside}, result);
    store_all<6>(result, to + sixteen * spread, patch_size * vector, vector);
  }
}

}  // namespace

RONDA_AVX512 void transform_inputs(const WinogradTiling& t, const float* x, std::int64_t first, Range tiles, float* v) {
  const auto place = [&](std::int64_t tile) {
    return place_of(t, t.from, first + tile, patch_size, t.padding_down, t.padding_right);
  };
  for (auto tile = static_cast<std::int64_t>(tiles.begin); tile < static_cast<std::int64_t>(tiles.end); ++tile)
    transform_tile<6, input_line>(t.from, place(tile), place(tile + 1), x, t.inputs / vector,
                                  v + tile * step_of(t.inputs));
}

RONDA_AVX512 void transform_gradients(const WinogradTiling& t, const float* dy, std::int64_t first, Range tiles,
                                      float* d) {
  const auto place = [&](std::int64_t tile) { return place_of(t, t.to, first + tile, tile_size, 0, 0); };
  for (auto tile = static_cast<std::int64_t>(tiles.begin); tile < static_cast<std::int64_t>(tiles.end); ++tile)
    transform_tile<4, gradient_line>(t.to, place(tile), place(tile + 1), dy, t.outputs / vector,
                                     d + tile * step_of(t.outputs));
}

/// A tile of sixteen channels, transformed back in one direction.
RONDA_AVX512_INLINE void transform_columns(const float* from, Sixteen (&half)[4][6]) {
#pragma GCC unroll 6
  for (int j = 0; j < 6; ++j) {
    Sixteen column[6], result[4];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) column[i] = _mm512_load_ps(from + (i * 6 + j) * vector);
    output_line(column, result);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) half[i][j] = result[i];
  }
}

RONDA_AVX512_INLINE Sixteen bias_of(const float* bias, std::int64_t sixteen) {
  return bias != nullptr ? _mm512_loadu_ps(bias + sixteen * vector) : _mm512_setzero_ps();
}

RONDA_AVX512 void transform_outputs(const WinogradTiling& t, const float* m, std::int64_t first, std::int64_t tiles,
                                    std::int64_t panel, const float* bias, bool relu, float* y) {
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const Place at = place_of(t, t.to, first + tile, tile_size, 0, 0);
    for (std::int64_t v = 0; v < t.vectors; ++v) {
      const std::int64_t sixteen = panel * t.vectors + v;
      Sixteen half[4][6];
      transform_columns(m + tile * step_of(t.width()) + v * spread, half);
      const Sixteen more = bias_of(bias, sixteen);
      float* const to = y + (at.offset + channels_at(t.to, sixteen));
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        if (i >= at.bottom) break;
        Sixteen row[4];
        output_line(half[i], row);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
          if (j >= at.end) break;
          const Sixteen sum = plus(row[j], more);
          _mm512_store_ps(to + i * at.down + j * at.right, relu ? rectified_lanes(sum) : sum);
        }
      }
    }
  }
}

RONDA_AVX512 void transform_and_pool(const WinogradTiling& t, const float* m, std::int64_t first, std::int64_t tiles,
                                     std::int64_t panel, const float* bias, bool relu, const PooledOutputs& pooled) {
  const Images& images = pooled.images;
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const std::int64_t sample = (first + tile) / (t.down * t.right), top = (first + tile) / t.right % t.down * 2,
                       left = (first + tile) % t.right * 2;
    for (std::int64_t v = 0; v < t.vectors; ++v) {
      const std::int64_t sixteen = panel * t.vectors + v;
      Sixteen half[4][6];
      transform_columns(m + tile * step_of(t.width()) + v * spread, half);
      const Sixteen more = bias_of(bias, sixteen);
      const std::int64_t start = sample * images.groups * images.image_size() + channels_at(images, sixteen);
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        if (top + i >= images.height) break;
        Sixteen above[4], below[4];
        output_line(half[2 * i], above);
        output_line(half[2 * i + 1], below);
#pragma GCC unroll 2
        for (int j = 0; j < 2; ++j) {
          if (left + j >= images.width) break;
          WindowMaximum maximum{plus(above[2 * j], more)};
          maximum.take(plus(above[2 * j + 1], more), 1);
          maximum.take(plus(below[2 * j], more), 2);
          maximum.take(plus(below[2 * j + 1], more), 3);
          const std::int64_t at = start + ((top + i) * images.width + left + j) * images.lanes;
          _mm512_store_ps(pooled.y + at, relu ? rectified_lanes(maximum.best) : maximum.best);
          _mm_storeu_si128(reinterpret_cast<__m128i*>(pooled.winners + at), maximum.where);
        }
      }
    }
  }
}

RONDA_AVX512 void transform_weights(const WinogradTiling& t, const float* w, bool turned, std::int64_t piece,
                                    float* u) {
  constexpr std::int64_t taps = kernel_size * kernel_size, square = vector * vector;
  const std::int64_t step = t.chunk() * t.width();
  alignas(64) float block[taps * square];
  for (std::int64_t in = 0; in < t.chunk() / vector; ++in)
    for (std::int64_t out = 0; out < t.vectors; ++out) {
      const float* from = w + t.square_at(piece, in, out, turned) * taps * square;
      if (turned) {
        for (std::int64_t tap = 0; tap < taps; ++tap)
          for (std::int64_t i = 0; i < vector; ++i)
            for (std::int64_t o = 0; o < vector; ++o)
              block[(taps - 1 - tap) * square + i * vector + o] = from[tap * square + o * vector + i];
        from = block;
      }
      float* to = u + in * vector * t.width() + out * vector;
      for (std::int64_t i = 0; i < vector; ++i) {
        Sixteen result[6][6];
        both_ways<3, 6, weight_line>(Whole{from + i * vector, kernel_size * square, square}, result);
        store_all<6>(result, to + i * t.width(), 6 * step, step);
      }
    }
}

RONDA_AVX512 void transform_weight_gradients(const WinogradTiling& t, const float* du, std::int64_t piece, float* dw) {
  constexpr std::int64_t taps = kernel_size * kernel_size, square = vector * vector;
  const std::int64_t step = t.chunk() * t.width();
  for (std::int64_t in = 0; in < t.chunk() / vector; ++in)
    for (std::int64_t out = 0; out < t.vectors; ++out) {
      const float* from = du + in * vector * t.width() + out * vector;
      float* to = dw + t.square_at(piece, in, out, false) * taps * square;
      for (std::int64_t i = 0; i < vector; ++i) {
        Sixteen result[3][3];
        both_ways<6, 3, weight_gradient_line>(Whole{from + i * t.width(), 6 * step, step}, result);
        store_all<3>(result, to + i * vector, kernel_size * square, square);
      }
    }
}
#else
void transform_inputs(const WinogradTiling&, const float*, std::int64_t, Range, float*) {}
void transform_gradients(const WinogradTiling&, const float*, std::int64_t, Range, float*) {}
void transform_outputs(const WinogradTiling&, const float*, std::int64_t, std::int64_t, std::int64_t, const float*,
                       bool, float*) {}
void transform_and_pool(const WinogradTiling&, const float*, std::int64_t, std::int64_t, std::int64_t, const float*,
                        bool, const PooledOutputs&) {}
void transform_weights(const WinogradTiling&, const float*, bool, std::int64_t, float*) {}
void transform_weight_gradients(const WinogradTiling&, const float*, std::int64_t, float*) {}
#endif

}  // namespace ronda::onednn::winograd
