#include <ronda/layers/onednn/images.hpp>
#include <ronda/layers/onednn/winner_loops.hpp>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>

namespace ronda::onednn::winner_loops {
namespace {

constexpr int kernel = 3, taps = kernel * kernel;
constexpr std::int64_t block_taps = taps * vector;  ///< floats of the weights of an output channel and a block
constexpr std::int64_t word = 64;                   ///< channels in a word of marks

std::int64_t words_of(const Geometry& g) { return (g.outputs + word - 1) / word; }

}  // namespace

std::int64_t scratch_bytes(const Geometry& g) {
  return g.places * words_of(g) * static_cast<std::int64_t>(sizeof(std::uint64_t)) +
         g.outputs * static_cast<std::int64_t>(sizeof(float));
}

#if defined(__x86_64__)
#define RONDA_WINNERS [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,bmi")]]
#define RONDA_WINNERS_INLINE [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,bmi"), gnu::always_inline]] inline

namespace {

/// A grid of 3×3 vectors in each of some blocks: element (i, j) at start[block] + i * row + j * column.
template <int blocks, class Number>
struct Grid {
  Number* start[blocks];
  std::int64_t row, column;

  RONDA_WINNERS_INLINE Number* at(int block, int tap) const {
    return start[block] + tap / kernel * row + tap % kernel * column;
  }
};

/// Sums in registers.
template <int blocks>
struct Sums {
  __m512 sum[blocks][taps];

  RONDA_WINNERS_INLINE void load(const Grid<blocks, float>& from) {
    each([&](int block, int tap) __attribute__((always_inline, target("avx512f,avx512dq,avx512bw,avx512vl,bmi"))) {
      sum[block][tap] = _mm512_loadu_ps(from.at(block, tap));
    });
  }
  RONDA_WINNERS_INLINE void add(float gradient, const Grid<blocks, const float>& operand) {
    const __m512 all = _mm512_set1_ps(gradient);
    each([&](int block, int tap) __attribute__((always_inline, target("avx512f,avx512dq,avx512bw,avx512vl,bmi"))) {
      sum[block][tap] = _mm512_fmadd_ps(all, _mm512_loadu_ps(operand.at(block, tap)), sum[block][tap]);
    });
  }
  RONDA_WINNERS_INLINE void store(const Grid<blocks, float>& to) const {
    each([&](int block, int tap) __attribute__((always_inline, target("avx512f,avx512dq,avx512bw,avx512vl,bmi"))) {
      _mm512_storeu_ps(to.at(block, tap), sum[block][tap]);
    });
  }
  template <class Body>
  RONDA_WINNERS_INLINE static void each(Body&& body) {
#pragma GCC unroll 2
    for (int block = 0; block < blocks; ++block)
#pragma GCC unroll 9
      for (int tap = 0; tap < taps; ++tap) body(block, tap);
  }
};

/// Some blocks of an image, from an offset on.
template <int blocks, class Number>
RONDA_WINNERS_INLINE Grid<blocks, Number> image_at(const Geometry& g, std::int64_t block, Number* image) {
  Grid<blocks, Number> grid{{}, g.row, g.column};
  for (int b = 0; b < blocks; ++b) grid.start[b] = image + g.block_at[block + b];
  return grid;
}
/// Some blocks of an output channel's weights.
template <int blocks, class Number>
RONDA_WINNERS_INLINE Grid<blocks, Number> weights_at(std::int64_t block, Number* of_channel) {
  Grid<blocks, Number> grid{{}, kernel * vector, vector};
  for (int b = 0; b < blocks; ++b) grid.start[b] = of_channel + (block + b) * block_taps;
  return grid;
}

/// Winners of one output channel in up to 32 windows.
struct OfChannel {
  const float* dy;
  const std::uint8_t* winners;
  const std::int32_t* window_at;
  std::uint32_t marks;
};

template <int blocks>
RONDA_WINNERS_INLINE void add_channel(const Geometry& g, const OfChannel& channel, std::int64_t block, const float* x,
                                      float* sums) {
  const Grid<blocks, float> to = weights_at<blocks>(block, sums);
  Sums<blocks> sum;
  sum.load(to);
  for (std::uint32_t marks = channel.marks; marks != 0; marks &= marks - 1) {
    const std::int64_t window = std::countr_zero(marks), at = window * g.lanes;
    const std::int64_t corner = channel.window_at[window] + g.place_at[channel.winners[at]];
    sum.add(channel.dy[at], image_at<blocks>(g, block, x + corner));
  }
  sum.store(to);
}

/// The winners at one place of a window.
/// @param gradients  of all channels
template <int blocks>
RONDA_WINNERS_INLINE void add_place(const Geometry& g, const std::uint64_t* marks, const float* gradients,
                                    std::int64_t block, const float* weights, float* dx) {
  const Grid<blocks, float> to = image_at<blocks>(g, block, dx);
  Sums<blocks> sum;
  sum.load(to);
  for (std::int64_t w = 0; w < words_of(g); ++w)
    for (std::uint64_t rest = marks[w]; rest != 0; rest &= rest - 1) {
      const std::int64_t channel = w * word + std::countr_zero(rest);
      sum.add(gradients[channel], weights_at<blocks>(block, weights + channel * g.blocks * block_taps));
    }
  sum.store(to);
}

}  // namespace

RONDA_WINNERS void add_weights(const Geometry& g, const float* x, const float* dy, const std::uint8_t* winners,
                               float* sums) {
  constexpr std::int64_t most = 32;  // a lane's bits
  for (std::int64_t first = 0; first < g.windows; first += most) {
    const std::int64_t count = std::min(most, g.windows - first);
    __m512i bits = _mm512_setzero_si512();
    for (std::int64_t window = 0; window < count; ++window) {
      const __m512 gradients = _mm512_loadu_ps(dy + (first + window) * g.lanes);
      bits = _mm512_mask_or_epi32(bits, _mm512_cmp_ps_mask(gradients, _mm512_setzero_ps(), _CMP_NEQ_UQ), bits,
                                  _mm512_set1_epi32(static_cast<int>(1U << window)));
    }
    alignas(64) std::uint32_t marks[vector];
    _mm512_store_si512(marks, bits);
    for (std::int64_t lane = 0; lane < vector; ++lane) {
      if (marks[lane] == 0) continue;
      const std::int64_t at = first * g.lanes + lane;
      const OfChannel channel{dy + at, winners + at, g.window_at + first, marks[lane]};
      float* const of_channel = sums + lane * g.blocks * block_taps;
      std::int64_t block = 0;
      for (; block + 2 <= g.blocks; block += 2) add_channel<2>(g, channel, block, x, of_channel);
      if (block < g.blocks) add_channel<1>(g, channel, block, x, of_channel);
    }
  }
}

RONDA_WINNERS void add_data(const Geometry& g, const float* dy, const std::uint8_t* winners, const float* weights,
                            void* scratch, float* dx) {
  const std::int64_t words = words_of(g);
  auto* const marks = static_cast<std::uint64_t*>(scratch);  // (places, words)
  auto* const gradients = reinterpret_cast<float*>(marks + g.places * words);
  for (std::int64_t window = 0; window < g.windows; ++window) {
    std::fill_n(marks, g.places * words, 0);
    for (std::int64_t sixteen = 0; sixteen * vector < g.outputs; ++sixteen) {
      const std::int64_t at = g.output_at[sixteen] + window * g.lanes;
      const __m512 values = _mm512_loadu_ps(dy + at);
      const __m128i places = _mm_loadu_si128(reinterpret_cast<const __m128i*>(winners + at));
      const __mmask16 there = _mm512_cmp_ps_mask(values, _mm512_setzero_ps(), _CMP_NEQ_UQ);
      _mm512_storeu_ps(gradients + sixteen * vector, values);
      for (std::int64_t place = 0; place < g.places; ++place) {
        const __mmask16 here = _mm_mask_cmpeq_epi8_mask(there, places, _mm_set1_epi8(static_cast<char>(place)));
        marks[place * words + sixteen * vector / word] |= std::uint64_t{here} << (sixteen * vector % word);
      }
    }
    for (std::int64_t place = 0; place < g.places; ++place) {
      const std::uint64_t* const here = marks + place * words;
      if (std::all_of(here, here + words, [](std::uint64_t bits) { return bits == 0; })) continue;
      float* const corner = dx + g.window_at[window] + g.place_at[place];
      std::int64_t block = 0;
      for (; block + 2 <= g.blocks; block += 2) add_place<2>(g, here, gradients, block, weights, corner);
      if (block < g.blocks) add_place<1>(g, here, gradients, block, weights, corner);
    }
  }
}
#else
void add_weights(const Geometry&, const float*, const float*, const std::uint8_t*, float*) {}
void add_data(const Geometry&, const float*, const std::uint8_t*, const float*, void*, float*) {}
#endif

}  // namespace ronda::onednn::winner_loops
