#include <ronda/layers/onednn/vectors.hpp>
#include <ronda/layers/onednn/winograd_kernels.hpp>

#include <algorithm>

namespace ronda::onednn::winograd {

#if defined(__x86_64__)
namespace avx512 {

using namespace onednn::avx512;

#define RONDA_SET RONDA_AVX512_SET
#include <ronda/layers/onednn/winograd_loops.hpp>
#undef RONDA_SET

namespace {

// 32 registers: up to 24 of sums, up to 4 of b, one of a.

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

}  // namespace

}  // namespace avx512

const Loops* avx512_loops() {
  static constexpr Loops loops{avx512::lanes,
                               avx512::transform_inputs,
                               avx512::transform_gradients,
                               avx512::transform_outputs,
                               avx512::transform_and_pool,
                               avx512::transform_weights,
                               avx512::transform_weight_gradients,
                               avx512::multiply_tiles,
                               avx512::multiply_channels};
  return &loops;
}
#else
const Loops* avx512_loops() { return nullptr; }
#endif

}  // namespace ronda::onednn::winograd
