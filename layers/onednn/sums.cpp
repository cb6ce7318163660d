#include <ronda/core/multiversion.hpp>
#include <ronda/layers/onednn/sums.hpp>

namespace ronda::onednn {
namespace {

RONDA_MULTIVERSION void add_range(float* __restrict sums, const float* __restrict more, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += more[i];
}

RONDA_MULTIVERSION void add_in_double(double* __restrict total, float* __restrict block, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    total[i] += double{block[i]};
    block[i] = 0;
  }
}

}  // namespace

void add_block(double* total, float* block, std::size_t count) { add_in_double(total, block, count); }

void add_to(float* sums, const float* more, std::size_t count, int threads) {
  constexpr std::size_t worth_a_thread = 1 << 14;
  const auto useful = static_cast<int>(std::min(count / worth_a_thread + 1, static_cast<std::size_t>(threads)));
  parallel_for(
      useful, count, [&](Range range) { add_range(sums + range.begin, more + range.begin, range.size()); }, 16);
}

}  // namespace ronda::onednn
