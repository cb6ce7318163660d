#include <ronda/layers/onednn/vectors.hpp>
#include <ronda/layers/onednn/winograd_kernels.hpp>

#include <algorithm>

namespace ronda::onednn::winograd {

#if defined(__x86_64__)
namespace avx2 {

using namespace onednn::avx2;

#define RONDA_SET RONDA_AVX2_SET
#include <ronda/layers/onednn/winograd_loops.hpp>
#undef RONDA_SET

namespace {

// 16 registers: 12 of sums, 2 of b, one of a.

void multiply_tiles(const Product& m, std::int64_t vectors) {
  switch (vectors) {
    case 4: return multiply_sixteens<6, 4, OfTiles<4>>(m);
    case 3: return multiply_sixteens<6, 3, OfTiles<3>>(m);
    case 2: return multiply_sixteens<6, 2, OfTiles<2>>(m);
    default: return multiply_sixteens<6, 1, OfTiles<1>>(m);
  }
}
void multiply_channels(const Product& m, std::int64_t vectors) {
  switch (vectors) {
    case 4: return multiply_sixteens<6, 4, OfChannels<4>>(m);
    case 3: return multiply_sixteens<6, 3, OfChannels<3>>(m);
    case 2: return multiply_sixteens<6, 2, OfChannels<2>>(m);
    default: return multiply_sixteens<6, 1, OfChannels<1>>(m);
  }
}

}  // namespace

}  // namespace avx2

const Loops* avx2_loops() {
  static constexpr Loops loops{avx2::lanes,
                               avx2::transform_inputs,
                               avx2::transform_gradients,
                               avx2::transform_outputs,
                               avx2::transform_and_pool,
                               avx2::transform_weights,
                               avx2::transform_weight_gradients,
                               avx2::multiply_tiles,
                               avx2::multiply_channels};
  return &loops;
}
#else
const Loops* avx2_loops() { return nullptr; }
#endif

}  // namespace ronda::onednn::winograd
