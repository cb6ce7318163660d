#include <ronda/core/multiversion.hpp>
#include <ronda/layers/arithmetic.hpp>
#include <ronda/layers/onednn/int8_product.hpp>
#include <ronda/layers/onednn/processor.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstring>

namespace ronda::onednn {
namespace {

constexpr std::int64_t tap_bytes = Int8Product::lanes * Int8Product::width;

/// Rows of x and y, and the first sixteen outputs that are computed.
struct Tile {
  const std::uint8_t* x;
  std::int64_t step;
  float* y;
  std::int64_t sixteen;
};

#if defined(__x86_64__)
#define RONDA_VNNI gnu::target("avx512f,avx512bw,avx512vnni")

/// Sums as numbers of y, for sixteen outputs of a row.
[[RONDA_VNNI, gnu::always_inline]] inline void store(const Int8Product& p, std::int64_t output, __m512i sum, float* y) {
  const __m512i shifted = _mm512_sub_epi32(sum, _mm512_loadu_si512(p.shift + output));
  // With masks of all lanes, since g++ 12 takes what the plain ones leave out for uninitialized.
  const __m512 number = _mm512_maskz_cvtepi32_ps(0xffff, shifted);
  __m512 result =
      _mm512_add_ps(_mm512_mul_ps(number, _mm512_loadu_ps(p.scale + output)), _mm512_loadu_ps(p.bias + output));
  if (p.relu) result = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(result, _mm512_setzero_ps(), _CMP_NLE_UQ), result);
  const std::int64_t left = p.outputs - output;
  const auto mask = static_cast<__mmask16>(left >= Int8Product::lanes ? 0xffff : (1 << left) - 1);
  _mm512_mask_storeu_ps(y + output, mask, result);
}

/// As integers, since g++ 12 moves arrays of __m512i to memory and back at each step.
using Sums = std::int32_t __attribute__((vector_size(64)));

/// A few rows times a few sixteens of outputs. Loops are unrolled early, so that the sums stay in registers.
template <int rows, int sixteens>
[[RONDA_VNNI, gnu::always_inline]] inline void multiply_tile(const Int8Product& p, const Tile& tile) {
  const std::int64_t step = tile.step, sixteen_bytes = p.sixteen_bytes();
  const std::int8_t* weight = p.weight + tile.sixteen * sixteen_bytes;
  Sums sum[rows][sixteens];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int s = 0; s < sixteens; ++s) sum[r][s] = Sums{};
  for (const std::int32_t tap : p.taps) {
    const std::uint8_t* x = tile.x + tap;
    __m512i weights[sixteens];
#pragma GCC unroll 4
    for (int s = 0; s < sixteens; ++s) weights[s] = _mm512_loadu_si512(weight + s * sixteen_bytes);
    weight += tap_bytes;
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      std::int32_t four = 0;
      std::memcpy(&four, x + r * step, sizeof four);
      const __m512i bytes = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int s = 0; s < sixteens; ++s)
        sum[r][s] =
            reinterpret_cast<Sums>(_mm512_dpbusd_epi32(reinterpret_cast<__m512i>(sum[r][s]), bytes, weights[s]));
    }
  }
#pragma GCC unroll 4
  for (int s = 0; s < sixteens; ++s)
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
      store(p, (tile.sixteen + s) * Int8Product::lanes, reinterpret_cast<__m512i>(sum[r][s]), tile.y + r * p.outputs);
}

/// As many rows at a time as have sums in 24 registers or fewer.
template <int sixteens>
[[RONDA_VNNI]] void multiply_columns(const Int8Product& p, Tile tile, std::int64_t rows) {
  constexpr int most = 6;
  for (; rows >= most; rows -= most) {
    multiply_tile<most, sixteens>(p, tile);
    tile.x += most * tile.step;
    tile.y += most * p.outputs;
  }
  switch (rows) {
    case 1: return multiply_tile<1, sixteens>(p, tile);
    case 2: return multiply_tile<2, sixteens>(p, tile);
    case 3: return multiply_tile<3, sixteens>(p, tile);
    case 4: return multiply_tile<4, sixteens>(p, tile);
    case 5: return multiply_tile<5, sixteens>(p, tile);
    default: return;
  }
}

void multiply(const Int8Product& p, Tile tile, std::int64_t rows) {
  const std::int64_t sixteens = p.sixteens();
  while (tile.sixteen < sixteens) {
    const std::int64_t left = sixteens - tile.sixteen;
    if (left >= 4)
      multiply_columns<4>(p, tile, rows);
    else if (left >= 2)
      multiply_columns<2>(p, tile, rows);
    else
      multiply_columns<1>(p, tile, rows);
    tile.sixteen += left >= 4 ? 4 : left >= 2 ? 2 : 1;
  }
}
#undef RONDA_VNNI

/// The same with AVX2, for one or two rows and sixteen outputs: bytes become numbers of 16 bits, whose products are
/// added in pairs. So each output has two sums until the end.
template <int rows>
[[gnu::target("avx2")]] void multiply_pairs(const Int8Product& p, const Tile& tile) {
  constexpr int parts = 4;  // of sixteen outputs, four each
  using Pairs = std::int32_t __attribute__((vector_size(32)));
  const std::int8_t* weight = p.weight + tile.sixteen * p.sixteen_bytes();
  Pairs sum[rows][parts];
#pragma GCC unroll 2
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int part = 0; part < parts; ++part) sum[r][part] = Pairs{};
  for (const std::int32_t tap : p.taps) {
    __m256i bytes[rows];
#pragma GCC unroll 2
    for (int r = 0; r < rows; ++r) {
      std::int32_t four = 0;
      std::memcpy(&four, tile.x + r * tile.step + tap, sizeof four);
      bytes[r] = _mm256_cvtepu8_epi16(_mm_set1_epi32(four));
    }
#pragma GCC unroll 4
    for (int part = 0; part < parts; ++part) {
      const __m256i weights =
          _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(weight + 16 * part)));
#pragma GCC unroll 2
      for (int r = 0; r < rows; ++r) sum[r][part] += reinterpret_cast<Pairs>(_mm256_madd_epi16(bytes[r], weights));
    }
    weight += tap_bytes;
  }
  const std::int64_t first = tile.sixteen * Int8Product::lanes, count = std::min(Int8Product::lanes, p.outputs - first);
  for (int r = 0; r < rows; ++r)
    for (std::int64_t l = 0; l < count; ++l) {
      const auto& pairs = sum[r][l / 4];
      const std::int32_t whole = pairs[2 * (l % 4)] + pairs[2 * (l % 4) + 1];
      tile.y[r * p.outputs + first + l] = p.number(whole, first + l);
    }
}

void multiply_avx2(const Int8Product& p, Tile tile, std::int64_t rows) {
  for (; rows > 0; rows -= 2) {
    for (tile.sixteen = 0; tile.sixteen < p.sixteens(); ++tile.sixteen)
      if (rows >= 2)
        multiply_pairs<2>(p, tile);
      else
        multiply_pairs<1>(p, tile);
    tile.x += 2 * tile.step;
    tile.y += 2 * p.outputs;
  }
}
#else
void multiply(const Int8Product&, Tile, std::int64_t) {}  // `best` says no
void multiply_avx2(const Int8Product&, Tile, std::int64_t) {}
#endif

/// The same without those instructions.
RONDA_MULTIVERSION void multiply_plainly(const Int8Product& p, const Tile& tile, std::int64_t rows) {
  constexpr std::int64_t lanes = Int8Product::lanes;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t sixteen = 0; sixteen < p.sixteens(); ++sixteen) {
      const std::int8_t* weight = p.weight + sixteen * p.sixteen_bytes();
      std::int32_t sums[lanes]{};
      for (const std::int32_t tap : p.taps) {
        const std::uint8_t* x = tile.x + r * tile.step + tap;
        for (std::int64_t l = 0; l < lanes; ++l)
          sums[l] +=
              x[0] * weight[4 * l] + x[1] * weight[4 * l + 1] + x[2] * weight[4 * l + 2] + x[3] * weight[4 * l + 3];
        weight += tap_bytes;
      }
      const std::int64_t first = sixteen * lanes, count = std::min(lanes, p.outputs - first);
      for (std::int64_t l = 0; l < count; ++l) {
        tile.y[r * p.outputs + first + l] = p.number(sums[l], first + l);
      }
    }
}

RONDA_MULTIVERSION std::uint32_t quantize_row(const float* __restrict x, std::int64_t count, float inverse, float zero,
                                              std::uint8_t* __restrict bytes) {
  std::uint32_t spoiled = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    bytes[i] = int8::byte_of(x[i], inverse, zero);
    spoiled |= int8::not_finite(x[i]);
  }
  return spoiled;
}

}  // namespace

Int8Product::Kernel Int8Product::best() noexcept {
#if defined(__x86_64__)
  if (has_avx512() && __builtin_cpu_supports("avx512vnni") != 0) return Kernel::vnni;
  return has_avx2() ? Kernel::avx2 : Kernel::plain;
#else
  return Kernel::plain;
#endif
}

std::string_view Int8Product::name_of(Kernel kernel) noexcept {
  switch (kernel) {
    case Kernel::vnni: return "AVX-512 VNNI";
    case Kernel::avx2: return "AVX2";
    case Kernel::plain: break;
  }
  return "plain loops";
}

float Int8Product::number(std::int32_t sum, std::int64_t output) const {
  const float y = int8::restored(sum - shift[output], scale[output], bias[output]);
  return relu ? rectified(y) : y;
}

void Int8Product::run(const std::uint8_t* x, std::int64_t step, std::int64_t rows, float* y, Kernel kernel) const {
  const Tile tile{x, step, y, 0};
  switch (kernel) {
    case Kernel::vnni: return multiply(*this, tile, rows);
    case Kernel::avx2: return multiply_avx2(*this, tile, rows);
    case Kernel::plain: return multiply_plainly(*this, tile, rows);
  }
}

void Int8Product::sum_weights(std::uint8_t byte, std::int32_t* sums) const {
  const std::int8_t* at = weight;
  for (std::int64_t sixteen = 0; sixteen < sixteens(); ++sixteen, sums += lanes) {
    std::fill_n(sums, lanes, 0);
    for (std::size_t tap = 0; byte != 0 && tap < taps.size(); ++tap)
      for (std::int64_t l = 0; l < lanes; ++l)
        for (std::int64_t i = 0; i < width; ++i)
          sums[l] += byte * at[static_cast<std::int64_t>(tap) * tap_bytes + l * width + i];
    at += sixteen_bytes();
  }
}

bool quantize(const float* x, std::int64_t count, float inverse, float zero, std::uint8_t* bytes) {
  return quantize_row(x, count, inverse, zero, bytes) == 0;
}

}  // namespace ronda::onednn
