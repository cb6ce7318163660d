#include <ronda/core/add_floats.hpp>
#include <ronda/core/denormals.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/parallel.hpp>

namespace ronda {

RONDA_MULTIVERSION void add_floats(const float* more, float* sums, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) sums[i] += more[i];
}

void add_floats(const float* more, float* sums, std::size_t count, int threads) {
  constexpr std::size_t floats_a_line = 16;
  parallel_for(
      threads, count,
      [&](Range part) {
        const DenormalScope flushing(true);
        add_floats(more + part.begin, sums + part.begin, part.size());
      },
      floats_a_line);
}

}  // namespace ronda
