#include <ronda/layers/onednn/processor.hpp>
#include <ronda/layers/onednn/vectors.hpp>
#include <ronda/layers/onednn/winograd_kernels.hpp>

#include <algorithm>

namespace ronda::onednn::winograd {

#if defined(__x86_64__)
namespace avx512 {

using namespace onednn::avx512;

namespace {

// 32 registers: up to 24 of sums, up to 4 of b, one of a. The rows of a tile, by its sixteens of columns.
constexpr int most_sixteens = 4;
constexpr int rows_of_tiles[] = {0, 16, 12, 8, 6}, rows_of_channels[] = {0, 16, 8, 8, 4};

}  // namespace

#define RONDA_SET RONDA_AVX512_SET
#include <ronda/layers/onednn/winograd_loops.hpp>
#undef RONDA_SET

}  // namespace avx512

namespace avx2 {

using namespace onednn::avx2;

namespace {

// 16 registers: 12 of sums, 2 of b, one of a.
constexpr int most_sixteens = 1;
constexpr int rows_of_tiles[] = {0, 6}, rows_of_channels[] = {0, 6};

}  // namespace

#define RONDA_SET RONDA_AVX2_SET
#include <ronda/layers/onednn/winograd_loops.hpp>
#undef RONDA_SET

}  // namespace avx2

const Loops* loops_here() { return has_avx512() ? &avx512::loops : has_avx2() ? &avx2::loops : nullptr; }
#else
const Loops* loops_here() { return nullptr; }
#endif

}  // namespace ronda::onednn::winograd
