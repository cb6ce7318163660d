#include <ronda/core/multiversion.hpp>
#include <ronda/layers/onednn/strassen_packing.hpp>
#include <ronda/layers/onednn/strassen_tile.hpp>
#include <ronda/layers/onednn/transpose_four.hpp>

#include <algorithm>
#include <array>
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
template <bool rows>
[[gnu::always_inline]] inline void sum_parts(const float* parts, std::int64_t part, std::int64_t count,
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

/// Some steps of all parts at a time, which stay in the first-level cache.
template <std::int64_t width, std::int64_t at_once>
[[gnu::always_inline]] inline void pack(const Side& side, std::int64_t depth, float* factors) {
  alignas(64) std::array<float, 16 * at_once * width> parts;
  for (std::int64_t begin = 0; begin < depth; begin += at_once) {
    const std::int64_t count = std::min(at_once, depth - begin);
    for (std::int64_t i = 0; i < 16; ++i) {
      const std::int64_t line = i / 4 * width, step = i % 4 * depth + begin;
      const Side part{side.first + line * side.line + step * side.step, side.line, side.step, side.lines - line,
                      side.steps - step};
      copy_part<width, at_once>(part, count, parts.data() + i * at_once * width);
    }
    sum_parts<width == kernel_rows>(parts.data(), at_once * width, count * width, factors + begin * width,
                                    factor_floats(depth, width));
  }
}

}  // namespace

RONDA_MULTIVERSION void pack_rows(const Side& a, std::int64_t depth, float* factors) {
  pack<kernel_rows, 32>(a, depth, factors);
}
RONDA_MULTIVERSION void pack_columns(const Side& b, std::int64_t depth, float* factors) {
  pack<kernel_columns, 16>(b, depth, factors);
}

}  // namespace ronda::onednn::strassen
