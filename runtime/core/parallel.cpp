#include <ronda/runtime/core/parallel.hpp>

#include <omp.h>

#include <algorithm>

namespace ronda {

void detail::parallel_ranges(int threads, std::size_t count, RangeFunction function, void* context) {
#pragma omp parallel num_threads(threads)
  {
    // OpenMP may grant fewer threads than asked for: the partition follows what was asked, so that results do not
    // change.
    const int granted = omp_get_num_threads();
    for (int worker = omp_get_thread_num(); worker < threads; worker += granted) {
      const Range range = part_of(count, static_cast<std::size_t>(worker), static_cast<std::size_t>(threads));
      if (range.size() > 0) function(context, range);
    }
  }
}

void use_threads(int threads) { omp_set_num_threads(std::max(threads, 1)); }

}  // namespace ronda
