// The loops of convolutions by tiles, in the words of vectors.hpp. No guard: winograd_kernels.cpp includes
// this once in each namespace that has the words, for a RONDA_SET.

namespace {

// The transforms interpolate at 0, ±p, ±q and infinity. With 1 and 2, the paper's, rounding is twice as much.

constexpr float p = 0.625F, q = 1.5F, p2 = p * p, q2 = q * q;
constexpr float scale_0 = 1 / (p2 * q2), scale_p = 1 / (2 * p2 * (p2 - q2)), scale_q = 1 / (2 * q2 * (q2 - p2));

/// Bᵀ d
RONDA_LOOP_INLINE void input_line(const Vector (&d)[6], Vector (&to)[6]) {
  const Vector even_p = add_product(-q2, d[2], d[4]), odd_p = add_product(-q2, d[1], d[3]);
  const Vector even_q = add_product(-p2, d[2], d[4]), odd_q = add_product(-p2, d[1], d[3]);
  to[0] = add_product(p2 * q2, d[0], add_product(-(p2 + q2), d[2], d[4]));
  to[1] = add_product(p, odd_p, even_p);
  to[2] = add_product(-p, odd_p, even_p);
  to[3] = add_product(q, odd_q, even_q);
  to[4] = add_product(-q, odd_q, even_q);
  to[5] = add_product(p2 * q2, d[1], add_product(-(p2 + q2), d[3], d[5]));
}
/// Aᵀ m
RONDA_LOOP_INLINE void output_line(const Vector (&m)[6], Vector (&to)[4]) {
  const Vector even_p = plus(m[1], m[2]), odd_p = minus(m[1], m[2]);
  const Vector even_q = plus(m[3], m[4]), odd_q = minus(m[3], m[4]);
  to[0] = plus(plus(m[0], even_p), even_q);
  to[1] = add_product(p, odd_p, times(q, odd_q));
  to[2] = add_product(p2, even_p, times(q2, even_q));
  to[3] = add_product(p2 * p, odd_p, add_product(q2 * q, odd_q, m[5]));
}
/// A dy
RONDA_LOOP_INLINE void gradient_line(const Vector (&dy)[4], Vector (&to)[6]) {
  const Vector even_p = add_product(p2, dy[2], dy[0]), odd_p = add_product(p2, dy[3], dy[1]);
  const Vector even_q = add_product(q2, dy[2], dy[0]), odd_q = add_product(q2, dy[3], dy[1]);
  to[0] = dy[0];
  to[1] = add_product(p, odd_p, even_p);
  to[2] = add_product(-p, odd_p, even_p);
  to[3] = add_product(q, odd_q, even_q);
  to[4] = add_product(-q, odd_q, even_q);
  to[5] = dy[3];
}
/// G w
RONDA_LOOP_INLINE void weight_line(const Vector (&w)[3], Vector (&to)[6]) {
  const Vector even_p = add_product(p2 * scale_p, w[2], times(scale_p, w[0])), odd_p = times(p * scale_p, w[1]);
  const Vector even_q = add_product(q2 * scale_q, w[2], times(scale_q, w[0])), odd_q = times(q * scale_q, w[1]);
  to[0] = times(scale_0, w[0]);
  to[1] = plus(even_p, odd_p);
  to[2] = minus(even_p, odd_p);
  to[3] = plus(even_q, odd_q);
  to[4] = minus(even_q, odd_q);
  to[5] = w[2];
}
/// Gᵀ u
RONDA_LOOP_INLINE void weight_gradient_line(const Vector (&u)[6], Vector (&to)[3]) {
  const Vector even_p = times(scale_p, plus(u[1], u[2])), odd_p = times(scale_p, minus(u[1], u[2]));
  const Vector even_q = times(scale_q, plus(u[3], u[4])), odd_q = times(scale_q, minus(u[3], u[4]));
  to[0] = add_product(scale_0, u[0], plus(even_p, even_q));
  to[1] = add_product(p, odd_p, times(q, odd_q));
  to[2] = add_product(p2, even_p, add_product(q2, even_q, u[5]));
}

/// A vector of channels of a tile, or of something else that is square; steps in floats.
struct Whole {
  const float* start;
  std::int64_t down, right;
  RONDA_LOOP_INLINE Vector at(int i, int j) const { return load(start + i * down + j * right); }
};
/// Zeros outside of the image.
struct Edge {
  const float* start;
  std::int64_t down, right;
  const There* inside;  ///< for each element of a patch
  RONDA_LOOP_INLINE Vector at(int i, int j) const {
    return load_if(inside[i * patch_size + j], start + i * down + j * right);
  }
};

/// to = M from Mᵀ for the matrix M that `line` multiplies with.
template <int n, int m, void (&line)(const Vector (&)[n], Vector (&)[m]), class Source>
RONDA_LOOP_INLINE void both_ways(const Source& from, Vector (&to)[m][m]) {
  Vector half[m][n];
#pragma GCC unroll 6
  for (int j = 0; j < n; ++j) {
    Vector column[n], result[m];
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
RONDA_LOOP_INLINE void store_square(const Vector (&from)[n][n], float* to, std::int64_t down, std::int64_t right) {
#pragma GCC unroll 6
  for (int i = 0; i < n; ++i)
#pragma GCC unroll 6
    for (int j = 0; j < n; ++j) store(to + i * down + j * right, from[i][j]);
}

/// Where the channels of a tile lie: its element (i, j) at data[i * down + j * right].
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

/// Where a channel is in a sample; and in a transformed tile, whose channels lie in sixteens.
std::int64_t in_sample(const Images& images, std::int64_t channel) {
  return channel / images.lanes * images.image_size() + channel % images.lanes;
}
std::int64_t in_tile(std::int64_t channel) { return channel / vector * spread + channel % vector; }

/// Transforms a tile of all channels to (channels / 16, 36, 16).
/// @param next  fetched meanwhile
template <int size, void (&line)(const Vector (&)[size], Vector (&)[6])>
RONDA_LOOP_INLINE void transform_tile(const Images& images, const Place& at, const Place& next, const float* data,
                                      std::int64_t channels, float* to) {
  const bool whole = at.is_whole(size);
  There inside[patch_size * patch_size];
  if (!whole)
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j)
        inside[i * patch_size + j] = i >= at.top && i < at.bottom && j >= at.left && j < at.end ? is_there : There{0};
  for (std::int64_t channel = 0; channel < channels; channel += lanes) {
    const std::int64_t of_channel = in_sample(images, channel);
    const float *from = data + (at.offset + of_channel), *ahead = data + (next.offset + of_channel);
    if (channel % vector == 0 || images.lanes < vector)
#pragma GCC unroll 6
      for (int i = 0; i < size; ++i)
#pragma GCC unroll 6
        for (int j = 0; j < size; ++j) __builtin_prefetch(ahead + i * at.down + j * at.right);
    Vector result[6][6];
    if (whole)
      both_ways<size, 6, line>(Whole{from, at.down, at.right}, result);
    else
      both_ways<size, 6, line>(Edge{from, at.down, at.right, inside}, result);
    store_square<6>(result, to + in_tile(channel), patch_size * vector, vector);
  }
}

/// Bits of a tile's outputs whose 3×3 inputs are 0 in all channels, as `transform_inputs` writes them. The transforms
/// would leave roundings of the tile's other inputs in these outputs.
RONDA_LOOP std::uint32_t find_zero_outputs(const Images& images, const Place& at, const float* data,
                                           std::int64_t channels) {
  const auto is_zero = [&](std::int64_t i, std::int64_t j, std::int64_t end) RONDA_LOOP_LAMBDA {
    if (i < at.top || i >= at.bottom || j < at.left || j >= at.end) return true;
    const float* const pixel = data + (at.offset + i * at.down + j * at.right);
    for (std::int64_t channel = 0; channel < end; channel += lanes)
      if (!are_zero(load(pixel + in_sample(images, channel)))) return false;
    return true;
  };
  // Every output sees one of the four pixels in the middle.
  if (!is_zero(2, 2, lanes) && !is_zero(2, 3, lanes) && !is_zero(3, 2, lanes) && !is_zero(3, 3, lanes)) return 0;
  std::uint32_t rows[patch_size];  // for each row of inputs, the outputs that see zeros in it
  for (std::int64_t i = 0; i < patch_size; ++i) {
    std::uint32_t zero = 0;
    for (std::int64_t j = 0; j < patch_size; ++j) zero |= (is_zero(i, j, channels) ? 1U : 0U) << j;
    rows[i] = zero & zero >> 1 & zero >> 2;
  }
  std::uint32_t outputs = 0;
  for (std::int64_t i = 0; i < tile_size; ++i) outputs |= (rows[i] & rows[i + 1] & rows[i + 2]) << (i * tile_size);
  return outputs;
}

RONDA_LOOP void transform_inputs(const WinogradTiling& t, const float* x, std::int64_t first, Range tiles, float* v,
                                 std::uint32_t* zero) {
  const auto place = [&](std::int64_t tile) {
    return place_of(t, t.from, first + tile, patch_size, t.padding_down, t.padding_right);
  };
  for (auto tile = static_cast<std::int64_t>(tiles.begin); tile < static_cast<std::int64_t>(tiles.end); ++tile) {
    if (zero != nullptr) zero[tile] = find_zero_outputs(t.from, place(tile), x, t.inputs);
    transform_tile<6, input_line>(t.from, place(tile), place(tile + 1), x, t.inputs, v + tile * step_of(t.inputs));
  }
}

RONDA_LOOP void transform_gradients(const WinogradTiling& t, const float* dy, std::int64_t first, Range tiles,
                                    float* d) {
  const auto place = [&](std::int64_t tile) { return place_of(t, t.to, first + tile, tile_size, 0, 0); };
  for (auto tile = static_cast<std::int64_t>(tiles.begin); tile < static_cast<std::int64_t>(tiles.end); ++tile)
    transform_tile<4, gradient_line>(t.to, place(tile), place(tile + 1), dy, t.outputs, d + tile * step_of(t.outputs));
}

/// A vector of channels of a tile, transformed back in one direction.
RONDA_LOOP_INLINE void transform_columns(const float* from, Vector (&half)[4][6]) {
#pragma GCC unroll 6
  for (int j = 0; j < 6; ++j) {
    Vector column[6], result[4];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) column[i] = load(from + (i * 6 + j) * vector);
    output_line(column, result);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) half[i][j] = result[i];
  }
}

/// The bits of a row of a tile's outputs.
RONDA_LOOP_INLINE std::uint32_t row_of(std::uint32_t outputs, int row) { return outputs >> (4 * row) & 15U; }

/// One row of a tile's outputs, before the bias.
/// @param zero  bits of the outputs that are 0
RONDA_LOOP_INLINE void transform_row(const Vector (&half)[6], std::uint32_t zero, Vector (&row)[4]) {
  output_line(half, row);
  if (zero == 0) return;
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j)
    if ((zero >> j & 1U) != 0) row[j] = zeros();
}

RONDA_LOOP_INLINE Vector bias_of(const float* bias, std::int64_t channel) {
  return bias != nullptr ? load_anywhere(bias + channel) : zeros();
}

RONDA_LOOP void transform_outputs(const WinogradTiling& t, const float* m, std::int64_t first, std::int64_t tiles,
                                  std::int64_t panel, const std::uint32_t* zero, const float* bias, bool relu,
                                  float* y) {
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const Place at = place_of(t, t.to, first + tile, tile_size, 0, 0);
    for (std::int64_t of_panel = 0; of_panel < t.width(); of_panel += lanes) {
      const std::int64_t channel = panel * t.width() + of_panel;
      Vector half[4][6];
      transform_columns(m + tile * step_of(t.width()) + in_tile(of_panel), half);
      const Vector more = bias_of(bias, channel);
      float* const to = y + (at.offset + in_sample(t.to, channel));
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        if (i >= at.bottom) break;
        Vector row[4];
        transform_row(half[i], row_of(zero[tile], i), row);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
          if (j >= at.end) break;
          const Vector sum = plus(row[j], more);
          store(to + i * at.down + j * at.right, relu ? rectified(sum) : sum);
        }
      }
    }
  }
}

RONDA_LOOP void transform_and_pool(const WinogradTiling& t, const float* m, std::int64_t first, std::int64_t tiles,
                                   std::int64_t panel, const std::uint32_t* zero, const float* bias, bool relu,
                                   const PooledOutputs& pooled) {
  const Images& images = pooled.images;
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const std::int64_t sample = (first + tile) / (t.down * t.right), top = (first + tile) / t.right % t.down * 2,
                       left = (first + tile) % t.right * 2;
    for (std::int64_t of_panel = 0; of_panel < t.width(); of_panel += lanes) {
      const std::int64_t channel = panel * t.width() + of_panel;
      Vector half[4][6];
      transform_columns(m + tile * step_of(t.width()) + in_tile(of_panel), half);
      const Vector more = bias_of(bias, channel);
      const std::int64_t start = sample * images.groups * images.image_size() + in_sample(images, channel);
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        if (top + i >= images.height) break;
        Vector above[4], below[4];
        transform_row(half[2 * i], row_of(zero[tile], 2 * i), above);
        transform_row(half[2 * i + 1], row_of(zero[tile], 2 * i + 1), below);
#pragma GCC unroll 2
        for (int j = 0; j < 2; ++j) {
          if (left + j >= images.width) break;
          WindowMaximum maximum{plus(above[2 * j], more)};
          maximum.take(plus(above[2 * j + 1], more), 1);
          maximum.take(plus(below[2 * j], more), 2);
          maximum.take(plus(below[2 * j + 1], more), 3);
          const std::int64_t at = start + ((top + i) * images.width + left + j) * images.lanes;
          store(pooled.y + at, relu ? rectified(maximum.best) : maximum.best);
          maximum.store_places(pooled.winners + at);
        }
      }
    }
  }
}

RONDA_LOOP void transform_weights(const WinogradTiling& t, const float* w, bool turned, std::int64_t piece, float* u) {
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
      for (std::int64_t i = 0; i < vector; ++i)
        for (std::int64_t o = 0; o < vector; o += lanes) {
          Vector result[6][6];
          both_ways<3, 6, weight_line>(Whole{from + i * vector + o, kernel_size * square, square}, result);
          store_square<6>(result, to + i * t.width() + o, 6 * step, step);
        }
    }
}

/// Sets the gradient of each tap that meets only padding to exactly 0; the transforms leave roundings there.
RONDA_LOOP_INLINE void clear_padded_taps(const WinogradTiling& t, Vector (&gradients)[3][3]) {
  if (t.every_tap_meets_inputs()) return;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      if (!t.tap_meets_inputs(i, j)) gradients[i][j] = zeros();
}

RONDA_LOOP void transform_weight_gradients(const WinogradTiling& t, const float* du, std::int64_t piece, float* dw) {
  constexpr std::int64_t taps = kernel_size * kernel_size, square = vector * vector;
  const std::int64_t step = t.chunk() * t.width();
  for (std::int64_t in = 0; in < t.chunk() / vector; ++in)
    for (std::int64_t out = 0; out < t.vectors; ++out) {
      const float* from = du + in * vector * t.width() + out * vector;
      float* to = dw + t.square_at(piece, in, out, false) * taps * square;
      for (std::int64_t i = 0; i < vector; ++i)
        for (std::int64_t o = 0; o < vector; o += lanes) {
          Vector result[3][3];
          both_ways<6, 3, weight_gradient_line>(Whole{from + i * t.width() + o, 6 * step, step}, result);
          clear_padded_taps(t, result);
          store_square<3>(result, to + i * vector + o, kernel_size * square, square);
        }
    }
}

// ---- products, written out, as in panels.cpp ------------------------------------------------------------------------

/// Rows are tiles, depth is channels, which come in sixteens.
/// @tparam width  sixteens in a panel
template <int width>
struct OfTiles {
  static constexpr const int* rows = rows_of_tiles;
  static constexpr int b_vector = vector, c_vector = spread;  ///< from sixteen columns to the next
  static constexpr std::int64_t unrolled = vector;
  static std::int64_t row(const Product& m) { return m.a_step; }
  static std::int64_t column(const Product&) { return 1; }
  static std::int64_t b_row(const Product&) { return width * vector; }
  static std::int64_t c_row(const Product& m) { return m.c_row; }
};
/// Rows are sixteen channels, depth is tiles.
template <int width>
struct OfChannels {
  static constexpr const int* rows = rows_of_channels;
  static constexpr int b_vector = spread, c_vector = vector;
  static constexpr std::int64_t unrolled = 1;
  static std::int64_t row(const Product&) { return 1; }
  static std::int64_t column(const Product& m) { return m.a_step; }
  static std::int64_t b_row(const Product& m) { return m.b_row; }
  static std::int64_t c_row(const Product&) { return width * vector; }
};

constexpr int parts = vector / lanes;  // of sixteen columns

/// @tparam columns  in sixteens
template <int rows, int columns, class Kind>
RONDA_LOOP_INLINE void multiply_tile(const Product& m, std::int64_t row) {
  constexpr int vectors = columns * parts;
  const std::int64_t a_row = Kind::row(m), c_row = Kind::c_row(m);
  float* const c = m.c + row * c_row;
  const auto b_at = [](int v) { return v / parts * Kind::b_vector + v % parts * lanes; };
  const auto c_at = [](int v) { return v / parts * Kind::c_vector + v % parts * lanes; };
  Vector sum[rows][vectors];
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) sum[r][v] = zeros();
  const float *a = m.a + row * a_row, *b = m.b;
  const auto multiply_row = [&](std::int64_t k) RONDA_LOOP_LAMBDA {
    Vector row_of_b[vectors];
    for (int v = 0; v < vectors; ++v) row_of_b[v] = load(b + k * Kind::b_row(m) + b_at(v));
    for (int r = 0; r < rows; ++r) {
      const Vector element = all(a[r * a_row + k * Kind::column(m)]);
      for (int v = 0; v < vectors; ++v) sum[r][v] = add_product(element, row_of_b[v], sum[r][v]);
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
    for (int v = 0; v < vectors; ++v) {
      float* const to = c + r * c_row + c_at(v);
      store(to, m.add ? plus(load(to), sum[r][v]) : sum[r][v]);
    }
}

template <int rows, int columns, class Kind>
RONDA_LOOP void multiply_rows(const Product& m) {
  std::int64_t row = 0;
  for (; row + rows <= m.rows; row += rows) multiply_tile<rows, columns, Kind>(m, row);
  for (; row + 4 <= m.rows; row += 4) multiply_tile<4, columns, Kind>(m, row);
  for (; row < m.rows; ++row) multiply_tile<1, columns, Kind>(m, row);
}

/// As many of a panel's sixteens at once as registers have sums for.
template <template <int> class Kind, int width>
void multiply_panel(Product m) {
  constexpr int columns = width < most_sixteens ? width : most_sixteens;
  static_assert(width % columns == 0);
  for (int sixteen = 0; sixteen < width; sixteen += columns) {
    multiply_rows<Kind<width>::rows[columns], columns, Kind<width>>(m);
    m.b += columns * Kind<width>::b_vector;
    m.c += columns * Kind<width>::c_vector;
  }
}

template <template <int> class Kind>
void multiply_panels(const Product& m, std::int64_t vectors) {
  switch (vectors) {
    case 4: return multiply_panel<Kind, 4>(m);
    case 3: return multiply_panel<Kind, 3>(m);
    case 2: return multiply_panel<Kind, 2>(m);
    default: return multiply_panel<Kind, 1>(m);
  }
}

constexpr Loops loops{lanes,
                      transform_inputs,
                      transform_gradients,
                      transform_outputs,
                      transform_and_pool,
                      transform_weights,
                      transform_weight_gradients,
                      multiply_panels<OfTiles>,
                      multiply_panels<OfChannels>};

}  // namespace
