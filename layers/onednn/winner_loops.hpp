// The loops of winners, in the words of vectors.hpp. No guard: winner_loops.cpp includes this once in each namespace
// that has the words, for a RONDA_SET.

namespace {

std::int64_t sixteens_of(const Geometry& g) { return g.blocks * lanes / vector; }

/// A grid of 3×3 vectors in each of some blocks: element (i, j) at start[block] + i * row + j * column.
template <int blocks, class Number>
struct Grid {
  Number* start[blocks];
  std::int64_t row, column;

  RONDA_LOOP_INLINE Number* at(int block, int tap) const {
    return start[block] + tap / kernel * row + tap % kernel * column;
  }
};

/// Sums in registers, which are added to memory at the end: a sum of sums has a smaller rounding error.
template <int blocks>
struct Sums {
  Vector sum[blocks][taps];

  RONDA_LOOP_INLINE void clear() {
    each([&](int block, int tap) RONDA_LOOP_LAMBDA { sum[block][tap] = zeros(); });
  }
  RONDA_LOOP_INLINE void add(float gradient, const Grid<blocks, const float>& operand) {
    const Vector factor = all(gradient);
    each([&](int block, int tap) RONDA_LOOP_LAMBDA {
      sum[block][tap] = add_product(factor, load_anywhere(operand.at(block, tap)), sum[block][tap]);
    });
  }
  RONDA_LOOP_INLINE void add_to(const Grid<blocks, float>& to) const {
    each([&](int block, int tap) RONDA_LOOP_LAMBDA {
      float* const at = to.at(block, tap);
      store_anywhere(at, plus(load_anywhere(at), sum[block][tap]));
    });
  }
  template <class Body>
  RONDA_LOOP_INLINE static void each(Body&& body) {
#pragma GCC unroll 2
    for (int block = 0; block < blocks; ++block)
#pragma GCC unroll 9
      for (int tap = 0; tap < taps; ++tap) body(block, tap);
  }
};

/// Some blocks of an image, from an offset on.
template <int blocks, class Number>
RONDA_LOOP_INLINE Grid<blocks, Number> image_at(const Geometry& g, std::int64_t block, Number* image) {
  Grid<blocks, Number> grid{{}, g.row, g.column};
  for (int b = 0; b < blocks; ++b) grid.start[b] = image + g.block_at[block + b];
  return grid;
}
/// Some blocks of an output channel's weights, which lie in sixteens.
template <int blocks, class Number>
RONDA_LOOP_INLINE Grid<blocks, Number> weights_at(std::int64_t block, Number* of_channel) {
  Grid<blocks, Number> grid{{}, kernel * vector, vector};
  for (int b = 0; b < blocks; ++b) {
    const std::int64_t channel = (block + b) * lanes;
    grid.start[b] = of_channel + channel / vector * block_taps + channel % vector;
  }
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
RONDA_LOOP_INLINE void add_channel(const Geometry& g, const OfChannel& channel, std::int64_t block, const float* x,
                                   float* sums) {
  const Grid<blocks, float> to = weights_at<blocks>(block, sums);
  Sums<blocks> sum;
  sum.clear();
  for (std::uint32_t marks = channel.marks; marks != 0; marks &= marks - 1) {
    const std::int64_t window = std::countr_zero(marks), at = window * g.lanes;
    const std::int64_t corner = channel.window_at[window] + g.place_at[channel.winners[at]];
    sum.add(channel.dy[at], image_at<blocks>(g, block, x + corner));
  }
  sum.add_to(to);
}

/// The winners at one place of a window.
/// @param gradients  of all channels
template <int blocks>
RONDA_LOOP_INLINE void add_place(const Geometry& g, const std::uint64_t* marks, const float* gradients,
                                 std::int64_t block, const float* weights, float* dx) {
  const Grid<blocks, float> to = image_at<blocks>(g, block, dx);
  const std::int64_t channel_size = sixteens_of(g) * block_taps;
  Sums<blocks> sum;
  sum.clear();
  for (std::int64_t w = 0; w < words_of(g); ++w)
    for (std::uint64_t rest = marks[w]; rest != 0; rest &= rest - 1) {
      const std::int64_t channel = w * word + std::countr_zero(rest);
      sum.add(gradients[channel], weights_at<blocks>(block, weights + channel * channel_size));
    }
  sum.add_to(to);
}

RONDA_LOOP void add_weights(const Geometry& g, const float* x, const float* dy, const std::uint8_t* winners,
                            float* sums) {
  constexpr std::int64_t most = 32;  // a lane's bits
  const std::int64_t channel_size = sixteens_of(g) * block_taps;
  for (std::int64_t first = 0; first < g.windows; first += most) {
    const std::int64_t count = std::min(most, g.windows - first);
    alignas(64) std::uint32_t marks[lanes];
    mark_windows(dy + first * g.lanes, g.lanes, count, marks);
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      if (marks[lane] == 0) continue;
      const std::int64_t at = first * g.lanes + lane;
      const OfChannel channel{dy + at, winners + at, g.window_at + first, marks[lane]};
      float* const of_channel = sums + lane * channel_size;
      std::int64_t block = 0;
      for (; block + at_once <= g.blocks; block += at_once) add_channel<at_once>(g, channel, block, x, of_channel);
      for (; block < g.blocks; ++block) add_channel<1>(g, channel, block, x, of_channel);
    }
  }
}

RONDA_LOOP void add_data(const Geometry& g, const float* dy, const std::uint8_t* winners, const float* weights,
                         void* scratch, float* dx) {
  const std::int64_t words = words_of(g);
  auto* const marks = static_cast<std::uint64_t*>(scratch);  // (places, words)
  auto* const gradients = reinterpret_cast<float*>(marks + g.places * words);
  for (std::int64_t window = 0; window < g.windows; ++window) {
    std::fill_n(marks, g.places * words, 0);
    for (std::int64_t channel = 0; channel < g.outputs; channel += lanes) {
      const std::int64_t at = g.output_at[channel / lanes] + window * g.lanes;
      store_anywhere(gradients + channel, load_anywhere(dy + at));
      const Winners here(dy + at, winners + at);
      for (std::int64_t place = 0; place < g.places; ++place)
        marks[place * words + channel / word] |= std::uint64_t{here.at(static_cast<int>(place))} << (channel % word);
    }
    for (std::int64_t place = 0; place < g.places; ++place) {
      const std::uint64_t* const here = marks + place * words;
      if (std::all_of(here, here + words, [](std::uint64_t bits) { return bits == 0; })) continue;
      float* const corner = dx + g.window_at[window] + g.place_at[place];
      std::int64_t block = 0;
      for (; block + at_once <= g.blocks; block += at_once)
        add_place<at_once>(g, here, gradients, block, weights, corner);
      for (; block < g.blocks; ++block) add_place<1>(g, here, gradients, block, weights, corner);
    }
  }
}

}  // namespace
