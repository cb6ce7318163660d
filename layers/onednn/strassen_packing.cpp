#include <ronda/core/multiversion.hpp>
#include <ronda/layers/onednn/strassen_tile.hpp>
#include <ronda/layers/onednn/transpose_four.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace ronda::onednn::strassen {
namespace {

using Sixteen = float __attribute__((vector_size(4 * lanes)));

[[gnu::always_inline]] inline void load(const float* from, Sixteen& into) { std::memcpy(&into, from, sizeof(into)); }

/// A part as the kernel reads it: to (depth, width) = the lines and steps of `part` that are there; zeros elsewhere.
/// The steps that come after `ahead` steps are fetched.
template <std::int64_t width, std::int64_t ahead>
[[gnu::always_inline]] inline void copy_part(const Side& part, std::int64_t depth, float* __restrict to) {
  const std::int64_t lines = std::clamp<std::int64_t>(part.lines, 0, width),
                     steps = std::clamp<std::int64_t>(part.steps, 0, depth);
  if (lines < width || steps < depth) std::fill_n(to, depth * width, 0.0F);
  if (part.step != 1 && lines == width) {
    for (std::int64_t k = 0; k < steps; ++k) {
      const float* const from = part.first + k * part.step;
      __builtin_prefetch(from + ahead * part.step);
      __builtin_prefetch(from + ahead * part.step + width - 1);
      std::memcpy(to + k * width, from, static_cast<std::size_t>(width) * sizeof(float));
    }
    return;
  }
  const std::int64_t whole_lines = part.step == 1 ? lines / 4 * 4 : 0, whole_steps = steps / lanes * lanes;
  for (std::int64_t i = 0; i < whole_lines; i += 4)
    for (std::int64_t k = 0; k < whole_steps; k += lanes) {
      const float* const from = part.first + i * part.line + k;
      for (std::int64_t line = 0; line < 4; ++line) __builtin_prefetch(from + line * part.line + ahead);
      transpose_four_by_sixteen(from, part.line, to + k * width + i, width);
    }
  for (std::int64_t k = 0; k < steps; ++k)
    for (std::int64_t i = k < whole_steps ? whole_lines : 0; i < lines; ++i)
      to[k * width + i] = part.first[i * part.line + k * part.step];
}

/// Seven factors of one level, in the order of a tile's products: a11, a12, s2, s3, a22, s1, s4, or b11, b21, t2, t3,
/// -t4, t1, b22. Both are made of parts [line][depth], so that b12 is x10.
template <bool rows>
[[gnu::always_inline]] inline void sum_level(const std::array<Sixteen, 4>& x, std::array<Sixteen, 7>& factors) {
  const auto& [x00, x01, x10, x11] = x;
  if constexpr (rows) {
    const Sixteen s1 = x10 + x11, s2 = s1 - x00;
    factors = {x00, x01, s2, x00 - x10, x11, s1, x01 - s2};
  } else {
    const Sixteen t1 = x10 - x00, t2 = x11 - t1;
    factors = {x00, x01, t2, x11 - x10, x01 - t2, t1, x11};
  }
}

/// Both levels, of some numbers of each part.
/// @param parts   [line][depth] of four by four, `part` numbers from one to the next
/// @param factor  from one factor to the next
/// @param scale   that all are multiplied with
template <bool rows>
[[gnu::always_inline]] inline void sum_parts(const float* parts, std::int64_t part, std::int64_t count, float scale,
                                             float* __restrict factors, std::int64_t factor) {
  for (std::int64_t i = 0; i < count; i += lanes) {
    std::array<std::array<Sixteen, 7>, 4> outer;
#pragma GCC unroll 4
    for (std::int64_t inner = 0; inner < 4; ++inner) {
      const float* const at = parts + (inner / 2 * 4 + inner % 2) * part + i;
      std::array<Sixteen, 4> x;
      load(at, x[0]);
      load(at + 2 * part, x[1]);
      load(at + 8 * part, x[2]);
      load(at + 10 * part, x[3]);
      for (Sixteen& numbers : x) numbers *= scale;
      sum_level<rows>(x, outer[inner]);
    }
#pragma GCC unroll 7
    for (std::int64_t block = 0; block < 7; ++block) {
      std::array<Sixteen, 7> sums;
      sum_level<rows>({outer[0][block], outer[1][block], outer[2][block], outer[3][block]}, sums);
#pragma GCC unroll 7
      for (std::int64_t j = 0; j < 7; ++j)
        std::memcpy(factors + (block * 7 + j) * factor + i, &sums[j], sizeof(Sixteen));
    }
  }
}

struct Magnitudes {
  float mean = 0, largest = 0;
};
/// Of a strip's numbers. The mean is none where one is.
[[gnu::always_inline]] inline Magnitudes magnitudes(const Side& side, std::int64_t most_lines,
                                                    std::int64_t most_steps) {
  const std::int64_t lines = std::clamp<std::int64_t>(side.lines, 0, most_lines),
                     steps = std::min(side.steps, most_steps);
  const bool along = side.step == 1;
  const std::int64_t rows = along ? lines : steps, columns = along ? steps : lines, row = along ? side.line : side.step,
                     whole = columns / (2 * lanes) * 2 * lanes;
  std::array<Sixteen, 2> sums{}, most{};
  Magnitudes of_rest;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* const numbers = side.first + r * row;
    for (std::int64_t i = 0; i < whole; i += 2 * lanes)
      for (std::int64_t half = 0; half < 2; ++half) {
        Sixteen x;
        load(numbers + i + half * lanes, x);
        x = x < 0 ? -x : x;
        sums[half] += x;
        most[half] = x > most[half] ? x : most[half];
      }
    for (std::int64_t i = whole; i < columns; ++i) {
      of_rest.mean += std::fabs(numbers[i]);
      of_rest.largest = std::max(of_rest.largest, std::fabs(numbers[i]));
    }
  }
  sums[0] += sums[1];
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    of_rest.mean += sums[0][lane];
    of_rest.largest = std::max({of_rest.largest, most[0][lane], most[1][lane]});
  }
  return {of_rest.mean / static_cast<float>(lines * steps), of_rest.largest};
}

/// What a strip is multiplied with, and what its products are afterwards.
struct Scale {
  float before = 1, after = 1;
  bool balanced = false;
};
/// A power of two that brings the mean magnitude to about 1, if the strip is balanced. Products of zeros become exact
/// zeros.
[[gnu::always_inline]] inline Scale scale_of(const Magnitudes& of) {
  constexpr float most = 16;         // times the mean: an element's error grows with the square of this
  constexpr int most_exponent = 60;  // so that a product of two scales is no extreme number
  if (of.largest == 0 && of.mean == 0) return {1, 0, true};
  if (!std::isfinite(of.mean) || of.largest > most * of.mean) return {};
  const int exponent = std::ilogb(of.mean);
  if (std::abs(exponent) > most_exponent) return {};
  return {std::ldexp(1.0F, -exponent), std::ldexp(1.0F, exponent), true};
}

/// Adds products of pairs of a factor (depth, width), those whose second step lies between `begin` and `end`.
template <std::int64_t width>
[[gnu::always_inline]] inline void add_pairs(float* factor, std::int64_t depth, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t vectors = (width + lanes - 1) / lanes;
  float* const to = pair_sums(factor, depth, width);
  std::array<Sixteen, vectors> sums;
  for (std::int64_t v = 0; v < vectors; ++v) load(to + v * lanes, sums[v]);
  const std::int64_t last = std::min(end, depth / paired_group * paired_group);
  for (std::int64_t k = (begin + 1) / paired_group * paired_group + 1; k < last; k += paired_group)
    for (std::int64_t v = 0; v < vectors; ++v) {
      Sixteen first, second;
      load(factor + (k - 1) * width + v * lanes, first);
      load(factor + k * width + v * lanes, second);
      sums[v] += first * second;
    }
  for (std::int64_t v = 0; v < vectors; ++v) std::memcpy(to + v * lanes, &sums[v], sizeof(Sixteen));
}

/// Some steps of all parts at a time, which stay in the first-level cache.
template <std::int64_t width, std::int64_t at_once>
[[gnu::always_inline]] inline void pack(const Side& side, std::int64_t depth, bool paired, float* factors) {
  const std::int64_t factor = factor_floats(depth, width);
  const Scale scale = paired ? scale_of(magnitudes(side, 4 * width, 4 * depth)) : Scale();
  unscale(factors, depth, width) = scale.after;
  balanced(factors, depth, width) = scale.balanced ? 1 : 0;
  for (std::int64_t i = 0; i < products; ++i)
    std::fill_n(pair_sums(factors + i * factor, depth, width), factor - depth * width, 0.0F);
  alignas(64) std::array<float, 16 * at_once * width> parts;
  for (std::int64_t begin = 0; begin < depth; begin += at_once) {
    const std::int64_t count = std::min(at_once, depth - begin);
    for (std::int64_t i = 0; i < 16; ++i) {
      const std::int64_t line = i / 4 * width, step = i % 4 * depth + begin;
      const Side part{side.first + line * side.line + step * side.step, side.line, side.step, side.lines - line,
                      side.steps - step};
      copy_part<width, at_once>(part, count, parts.data() + i * at_once * width);
    }
    sum_parts<width == kernel_rows>(parts.data(), at_once * width, count * width, scale.before, factors + begin * width,
                                    factor);
    for (std::int64_t i = 0; scale.balanced && i < products; ++i)
      add_pairs<width>(factors + i * factor, depth, begin, begin + count);
  }
}

}  // namespace

RONDA_MULTIVERSION void pack_rows(const Side& a, std::int64_t depth, bool paired, float* factors) {
  pack<kernel_rows, 32>(a, depth, paired, factors);
}
RONDA_MULTIVERSION void pack_columns(const Side& b, std::int64_t depth, bool paired, float* factors) {
  pack<kernel_columns, 16>(b, depth, paired, factors);
}

}  // namespace ronda::onednn::strassen
