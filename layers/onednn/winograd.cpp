#include <ronda/core/buffer.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/layers/onednn/winograd.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>

namespace ronda::onednn {
namespace {

using Tiling = Winograd::Tiling;

constexpr std::int64_t tile_size = 4, kernel_size = 3, patch_size = tile_size + kernel_size - 1;
constexpr std::int64_t elements = patch_size * patch_size;

/// Floats of one pair of a tile and sixteen channels, transformed: 36 vectors.
constexpr std::int64_t spread = elements * vector;

/// c (rows, width) = a (rows, depth) · b (depth, width), or += it; steps in floats.
struct Product {
  const float* a;
  std::int64_t a_step;  ///< from a tile to the next
  const float* b;
  std::int64_t b_row;
  float* c;
  std::int64_t c_row;
  std::int64_t rows, depth;
  bool add;
};

/// Floats of a tile of all channels, transformed: a line more, so that tiles start in different sets of the caches.
constexpr std::int64_t step_of(std::int64_t channels) { return channels * elements + vector; }

#if defined(__x86_64__)
#define RONDA_AVX512 [[gnu::target("avx512f")]]
#define RONDA_AVX512_INLINE [[gnu::target("avx512f"), gnu::always_inline]] inline

using Sixteen = __m512;

// The transforms interpolate at 0, ±p, ±q and infinity. With 1 and 2, the paper's, rounding is twice as much.

constexpr float p = 0.625F, q = 1.5F, p2 = p * p, q2 = q * q;
constexpr float scale_0 = 1 / (p2 * q2), scale_p = 1 / (2 * p2 * (p2 - q2)), scale_q = 1 / (2 * q2 * (q2 - p2));

RONDA_AVX512_INLINE Sixteen all(float x) { return _mm512_set1_ps(x); }
RONDA_AVX512_INLINE Sixteen add_product(float x, Sixteen y, Sixteen sum) { return _mm512_fmadd_ps(all(x), y, sum); }
RONDA_AVX512_INLINE Sixteen times(float x, Sixteen y) { return _mm512_mul_ps(all(x), y); }
RONDA_AVX512_INLINE Sixteen plus(Sixteen x, Sixteen y) { return _mm512_add_ps(x, y); }
RONDA_AVX512_INLINE Sixteen minus(Sixteen x, Sixteen y) { return _mm512_sub_ps(x, y); }

/// As `ronda::rectified`: the second is given where one is NaN. (With a mask, since GCC 12 warns of it without.)
RONDA_AVX512_INLINE Sixteen rectified(Sixteen x) { return _mm512_mask_max_ps(x, 0xffff, _mm512_setzero_ps(), x); }

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
Place place_of(const Tiling& t, const Images& images, std::int64_t tile, std::int64_t size, std::int64_t above,
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

/// v (tiles, inputs / 16, 36, 16) of some tiles
RONDA_AVX512 void transform_inputs(const Tiling& t, const float* x, std::int64_t first, Range tiles, float* v) {
  const auto place = [&](std::int64_t tile) {
    return place_of(t, t.from, first + tile, patch_size, t.padding_down, t.padding_right);
  };
  for (auto tile = static_cast<std::int64_t>(tiles.begin); tile < static_cast<std::int64_t>(tiles.end); ++tile)
    transform_tile<6, input_line>(t.from, place(tile), place(tile + 1), x, t.inputs / vector,
                                  v + tile * step_of(t.inputs));
}

/// d (tiles, outputs / 16, 36, 16) of some tiles
RONDA_AVX512 void transform_gradients(const Tiling& t, const float* dy, std::int64_t first, Range tiles, float* d) {
  const auto place = [&](std::int64_t tile) { return place_of(t, t.to, first + tile, tile_size, 0, 0); };
  for (auto tile = static_cast<std::int64_t>(tiles.begin); tile < static_cast<std::int64_t>(tiles.end); ++tile)
    transform_tile<4, gradient_line>(t.to, place(tile), place(tile + 1), dy, t.outputs / vector,
                                     d + tile * step_of(t.outputs));
}

/// y of a block's tiles and a panel's channels, from m (tiles, vectors, 36, 16)
RONDA_AVX512 void transform_outputs(const Tiling& t, const float* m, std::int64_t first, std::int64_t tiles,
                                    std::int64_t panel, const float* bias, bool relu, float* y) {
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const Place at = place_of(t, t.to, first + tile, tile_size, 0, 0);
    for (std::int64_t v = 0; v < t.vectors; ++v) {
      const std::int64_t sixteen = panel * t.vectors + v;
      Sixteen half[4][6];
      const float* from = m + tile * step_of(t.width()) + v * spread;
#pragma GCC unroll 6
      for (int j = 0; j < 6; ++j) {
        Sixteen column[6], result[4];
#pragma GCC unroll 6
        for (int i = 0; i < 6; ++i) column[i] = _mm512_load_ps(from + (i * 6 + j) * vector);
        output_line(column, result);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) half[i][j] = result[i];
      }
      const Sixteen more = bias != nullptr ? _mm512_loadu_ps(bias + sixteen * vector) : _mm512_setzero_ps();
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
          _mm512_store_ps(to + i * at.down + j * at.right, relu ? rectified(sum) : sum);
        }
      }
    }
  }
}

/// A piece of the weights: (36, inputs of a chunk, outputs of a panel).
/// @param w       (outputs / 16, inputs / 16, 3, 3, 16 inputs, 16 outputs)
/// @param turned  w is another convolution's, whose gradients this one computes: inputs are outputs there, and the
///                kernel is turned by half a circle
RONDA_AVX512 void transform_weights(const Tiling& t, const float* w, bool turned, std::int64_t piece, float* u) {
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

/// dw from a piece of its gradients; layouts as above.
RONDA_AVX512 void transform_weight_gradients(const Tiling& t, const float* du, std::int64_t piece, float* dw) {
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

// Written out, as in panels.cpp.

/// Rows are tiles, depth is channels, which come in sixteens.
template <int vectors>
struct OfTiles {
  static constexpr int b_vector = vector, c_vector = spread;  ///< from sixteen columns to the next
  static constexpr std::int64_t unrolled = vector;
  static std::int64_t row(const Product& m) { return m.a_step; }
  static std::int64_t column(const Product&) { return 1; }
  static std::int64_t b_row(const Product&) { return vectors * vector; }
  static std::int64_t c_row(const Product& m) { return m.c_row; }
};
/// Rows are sixteen channels, depth is tiles.
template <int vectors>
struct OfChannels {
  static constexpr int b_vector = spread, c_vector = vector;
  static constexpr std::int64_t unrolled = 1;
  static std::int64_t row(const Product&) { return 1; }
  static std::int64_t column(const Product& m) { return m.a_step; }
  static std::int64_t b_row(const Product& m) { return m.b_row; }
  static std::int64_t c_row(const Product&) { return vectors * vector; }
};

template <int rows, int vectors, class Kind>
RONDA_AVX512_INLINE void multiply_tile(const Product& m, std::int64_t row) {
  const std::int64_t a_row = Kind::row(m), c_row = Kind::c_row(m);
  float* const c = m.c + row * c_row;
  Sixteen sum[rows][vectors];
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v)
      sum[r][v] = m.add ? _mm512_load_ps(c + r * c_row + v * Kind::c_vector) : _mm512_setzero_ps();
  const float *a = m.a + row * a_row, *b = m.b;
  const auto multiply_row = [&](std::int64_t k) __attribute__((always_inline, target("avx512f"))) {
    Sixteen row_of_b[vectors];
    for (int v = 0; v < vectors; ++v) row_of_b[v] = _mm512_load_ps(b + k * Kind::b_row(m) + v * Kind::b_vector);
    for (int r = 0; r < rows; ++r) {
      const Sixteen element = _mm512_set1_ps(a[r * a_row + k * Kind::column(m)]);
      for (int v = 0; v < vectors; ++v) sum[r][v] = _mm512_fmadd_ps(element, row_of_b[v], sum[r][v]);
    }
  };
  if constexpr (Kind::unrolled > 1) {
    for (std::int64_t k = 0; k < m.depth; k += vector, a += spread, b += vector * Kind::b_row(m)) {
      for (int r = 0; r < rows; ++r) __builtin_prefetch(a + r * a_row + vector);  // the next element's
#pragma GCC unroll 4
      for (int i = 0; i < vector; ++i) multiply_row(i);
    }
  } else {
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < m.depth; ++k, a += Kind::column(m), b += Kind::b_row(m)) multiply_row(0);
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) _mm512_store_ps(c + r * c_row + v * Kind::c_vector, sum[r][v]);
}

template <int rows, int vectors, class Kind>
RONDA_AVX512 void multiply_rows(const Product& m) {
  std::int64_t row = 0;
  for (; row + rows <= m.rows; row += rows) multiply_tile<rows, vectors, Kind>(m, row);
  for (; row + 4 <= m.rows; row += 4) multiply_tile<4, vectors, Kind>(m, row);
  for (; row < m.rows; ++row) multiply_tile<1, vectors, Kind>(m, row);
}

void multiply_tiles(const Product& m, std::int64_t vectors) {
  switch (vectors) {
    case 4: return multiply_rows<6, 4, OfTiles<4>>(m);
    case 3: return multiply_rows<8, 3, OfTiles<3>>(m);
    case 2: return multiply_rows<12, 2, OfTiles<2>>(m);
    default: return multiply_rows<16, 1, OfTiles<1>>(m);
  }
}
void multiply_channels(const Product& m, std::int64_t vectors) {
  switch (vectors) {
    case 4: return multiply_rows<4, 4, OfChannels<4>>(m);
    case 3: return multiply_rows<8, 3, OfChannels<3>>(m);
    case 2: return multiply_rows<8, 2, OfChannels<2>>(m);
    default: return multiply_rows<16, 1, OfChannels<1>>(m);
  }
}
#else
// `make` says no.
void transform_inputs(const Tiling&, const float*, std::int64_t, Range, float*) {}
void transform_gradients(const Tiling&, const float*, std::int64_t, Range, float*) {}
void transform_outputs(const Tiling&, const float*, std::int64_t, std::int64_t, std::int64_t, const float*, bool,
                       float*) {}
void transform_weights(const Tiling&, const float*, bool, std::int64_t, float*) {}
void transform_weight_gradients(const Tiling&, const float*, std::int64_t, float*) {}
void multiply_tiles(const Product&, std::int64_t) {}
void multiply_channels(const Product&, std::int64_t) {}
#endif

/// Whether there is AVX-512, and ONEDNN_MAX_CPU_ISA leaves it to the library.
bool suits_processor() {
#if defined(__x86_64__)
  const auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return __builtin_cpu_supports("avx512f") != 0 &&
         (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
#else
  return false;
#endif
}

std::int64_t vectors_of(std::int64_t outputs) {
  for (const std::int64_t vectors : {4, 3, 2})
    if (outputs % (vectors * vector) == 0) return vectors;
  return 1;
}

float* floats(std::byte* scratch) { return reinterpret_cast<float*>(scratch); }

constexpr std::int64_t tiles_across(std::int64_t extent) { return (extent + tile_size - 1) / tile_size; }

}  // namespace

Winograd::Tiling::Tiling(const Images& source, const Images& destination, std::int64_t padding_above,
                         std::int64_t padding_left, int threads)
    : from(source),
      to(destination),
      padding_down(padding_above),
      padding_right(padding_left),
      down(tiles_across(to.height)),
      right(tiles_across(to.width)),
      inputs(from.groups * from.lanes),
      outputs(to.groups * to.lanes),
      vectors(vectors_of(outputs)),
      input_vectors(vectors_of(inputs)) {
  constexpr std::int64_t usual = 48, most = 96;
  in_one_block = threads == 1 && tiles() <= most;
  block = in_one_block ? tiles() : usual;
}

std::int64_t Winograd::Tiling::piece_floats() const { return elements * chunk() * width(); }
std::int64_t Winograd::Tiling::weight_floats() const { return piece_floats() * (in_one_block ? 1 : pieces()); }

Winograd::Winograd(const Runtime& runtime, const ConvolutionProblem& spec, const Images& input, const Images& output,
                   const TensorDesc& weight)
    : threads_(runtime.threads),
      forward_(input, output, spec.padding.height, spec.padding.width, threads_),
      backward_(output, input, kernel_size - 1 - spec.padding.height, kernel_size - 1 - spec.padding.width, threads_),
      parameter_bytes_(weight.bytes()),
      weights_bytes_(0) {
  const TensorDesc liked = weight_of(spec);
  if (!same_bytes(weight, liked)) {
    to_parameter_ = std::make_unique<Kernel>(make_weight_reorder(runtime, liked, weight));
    from_parameter_ = std::make_unique<Kernel>(make_weight_reorder(runtime, weight, liked));
    weights_bytes_ = liked.bytes();
  }
  const auto of_convolution = [&](const Tiling& t) {
    return t.weight_floats() + threads_ * t.block * (step_of(t.inputs) + step_of(t.width()));
  };
  const Tiling& t = forward_;
  const std::int64_t of_gradients = t.weight_floats() + t.block * (step_of(t.inputs) + step_of(t.outputs));
  const std::int64_t most = std::max({of_convolution(forward_), of_convolution(backward_), of_gradients});
  scratch_bytes_ = weights_bytes_ + static_cast<std::size_t>(most) * sizeof(float);
}

/// The parameter, as the transforms read it.
const float* Winograd::weights(const float* parameter, std::byte* scratch) {
  if (!from_parameter_) return parameter;
  from_parameter_->run(std::array<void*, 2>{const_cast<float*>(parameter), scratch});
  return floats(scratch);
}

void Winograd::forward(const float* x, const float* w, const float* bias, bool relu, float* y, std::byte* scratch) {
  convolve(forward_, x, weights(w, scratch), false, bias, relu, y, floats(scratch + weights_bytes_));
}

void Winograd::backward_data(const float* dz, const float* w, float* dx, std::byte* scratch) {
  convolve(backward_, dz, weights(w, scratch), true, nullptr, false, dx, floats(scratch + weights_bytes_));
}

void Winograd::convolve(const Tiling& t, const float* x, const float* w, bool turned, const float* bias, bool relu,
                        float* y, float* u) const {
  float* const blocks = u + t.weight_floats();
  if (!t.in_one_block)
    parallel_for(threads_, static_cast<std::size_t>(t.pieces()), [&](Range range) {
      for (auto piece = static_cast<std::int64_t>(range.begin); piece < static_cast<std::int64_t>(range.end); ++piece)
        transform_weights(t, w, turned, piece, u + piece * t.piece_floats());
    });
  const auto workers = static_cast<std::size_t>(threads_);
  parallel_for(threads_, workers, [&](Range range) {
    for (std::size_t worker = range.begin; worker < range.end; ++worker) {
      float* const v = blocks + static_cast<std::int64_t>(worker) * t.block * (step_of(t.inputs) + step_of(t.width()));
      float* const m = v + t.block * step_of(t.inputs);
      const Range mine = part_of(static_cast<std::size_t>(t.tiles()), worker, workers);
      const auto end = static_cast<std::int64_t>(mine.end);
      for (auto first = static_cast<std::int64_t>(mine.begin); first < end; first += t.block) {
        const std::int64_t tiles = std::min(t.block, end - first);
        transform_inputs(t, x, first, {0, static_cast<std::size_t>(tiles)}, v);
        for (std::int64_t piece = 0; piece < t.pieces(); ++piece) {
          const std::int64_t panel = piece / t.chunks(), chunk = piece % t.chunks();
          float* const weights = t.in_one_block ? u : u + piece * t.piece_floats();
          if (t.in_one_block) transform_weights(t, w, turned, piece, weights);
          for (std::int64_t e = 0; e < elements; ++e)
            multiply_tiles({v + chunk * t.input_vectors * spread + e * vector, step_of(t.inputs),
                            weights + e * t.chunk() * t.width(), t.width(), m + e * vector, step_of(t.width()), tiles,
                            t.chunk(), chunk > 0},
                           t.vectors);
          if (chunk + 1 == t.chunks()) transform_outputs(t, m, first, tiles, panel, bias, relu, y);
        }
      }
    }
  });
}

void Winograd::backward_weights(const float* x, const float* dz, float* dw, std::byte* scratch) {
  const Tiling& t = forward_;
  float* const liked = to_parameter_ ? floats(scratch) : dw;
  float* const du = floats(scratch + weights_bytes_);
  float* const v = du + t.weight_floats();
  float* const d = v + t.block * step_of(t.inputs);
  const auto multiply = [&](std::int64_t piece, std::int64_t e, std::int64_t tiles, bool add, float* sums) {
    const std::int64_t panel = piece / t.chunks(), chunk = piece % t.chunks();
    for (std::int64_t in = 0; in < t.input_vectors; ++in)
      multiply_channels({v + (chunk * t.input_vectors + in) * spread + e * vector, step_of(t.inputs),
                         d + panel * t.vectors * spread + e * vector, step_of(t.outputs),
                         sums + (e * t.chunk() + in * vector) * t.width(), t.width(), vector, tiles, add},
                        t.vectors);
  };
  if (t.in_one_block) {
    const Range all{0, static_cast<std::size_t>(t.tiles())};
    transform_inputs(t, x, 0, all, v);
    transform_gradients(t, dz, 0, all, d);
    for (std::int64_t piece = 0; piece < t.pieces(); ++piece) {
      for (std::int64_t e = 0; e < elements; ++e) multiply(piece, e, t.tiles(), false, du);
      transform_weight_gradients(t, du, piece, liked);
    }
  } else {
    for (std::int64_t first = 0; first < t.tiles(); first += t.block) {
      const std::int64_t tiles = std::min(t.block, t.tiles() - first);
      parallel_for(threads_, static_cast<std::size_t>(tiles), [&](Range range) {
        transform_inputs(t, x, first, range, v);
        transform_gradients(t, dz, first, range, d);
      });
      parallel_for(threads_, static_cast<std::size_t>(t.pieces() * elements), [&](Range range) {
        for (auto i = static_cast<std::int64_t>(range.begin); i < static_cast<std::int64_t>(range.end); ++i)
          multiply(i / elements, i % elements, tiles, first > 0, du + i / elements * t.piece_floats());
      });
    }
    if (t.tiles() == 0) std::fill_n(du, t.weight_floats(), 0.0F);
    parallel_for(threads_, static_cast<std::size_t>(t.pieces()), [&](Range range) {
      for (auto piece = static_cast<std::int64_t>(range.begin); piece < static_cast<std::int64_t>(range.end); ++piece)
        transform_weight_gradients(t, du + piece * t.piece_floats(), piece, liked);
    });
  }
  if (to_parameter_) to_parameter_->run(std::array<void*, 2>{liked, dw});
}

bool Winograd::suits(const ConvolutionProblem& spec) {
  return spec.input.dtype == DType::float32 && spec.is_usual() && spec.kernel == kernel_size && spec.stride == 1 &&
         spec.padding.height < kernel_size && spec.padding.width < kernel_size && spec.input.shape[3] % vector == 0 &&
         spec.outputs % vector == 0;
}

std::unique_ptr<Winograd> Winograd::make(const Runtime& runtime, const ConvolutionProblem& spec,
                                         const TensorDesc& convolved, const TensorDesc& weight) {
  if (!suits_processor() || !suits(spec)) return nullptr;
  const auto input = images_of(spec.input), output = images_of(convolved);
  if (!input || !output || input->lanes % vector != 0 || output->lanes % vector != 0) return nullptr;
  return std::unique_ptr<Winograd>(new Winograd(runtime, spec, *input, *output, weight));
}

TensorDesc Winograd::output_of(const ConvolutionProblem& spec) {
  return {convolution_output(spec), spec.input.dtype, spec.input.layout};
}
TensorDesc Winograd::weight_of(const ConvolutionProblem& spec) {
  return {weight_shape(spec, spec.input.shape), spec.input.dtype, Layout::parse("abcd16b16a")};
}

/// Tensors of the sizes of a step.
struct Winograd::Rehearsal {
  Buffer x, w, bias, y, scratch;
};

std::shared_ptr<Winograd::Rehearsal> Winograd::make_rehearsal() const {
  return std::make_shared<Rehearsal>(Rehearsal{zeros<float>(forward_.from), Buffer::host(parameter_bytes_),
                                               Buffer::host(static_cast<std::size_t>(forward_.outputs) * sizeof(float)),
                                               zeros<float>(forward_.to), Buffer::host(scratch_bytes_)});
}

std::function<void()> Winograd::forward_rehearsal(bool relu) {
  return rehearsal([this] { return make_rehearsal(); },
                   [this, relu](const Rehearsal& r) {
                     forward(data<float>(r.x), data<float>(r.w), data<float>(r.bias), relu, data<float>(r.y),
                             r.scratch.data());
                   });
}
std::function<void()> Winograd::data_rehearsal() {
  return rehearsal([this] { return make_rehearsal(); },
                   [this](const Rehearsal& r) {
                     backward_data(data<float>(r.y), data<float>(r.w), data<float>(r.x), r.scratch.data());
                   });
}
std::function<void()> Winograd::weights_rehearsal() {
  return rehearsal([this] { return make_rehearsal(); },
                   [this](const Rehearsal& r) {
                     backward_weights(data<float>(r.x), data<float>(r.y), data<float>(r.w), r.scratch.data());
                   });
}

}  // namespace ronda::onednn
