#include <ronda/core/core_mask.hpp>
#include <ronda/core/denormals.hpp>
#include <ronda/core/parallel.hpp>

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace ronda {

void detail::parallel_ranges(int threads, std::size_t count, RangeFunction function, void* context) {
  const bool flushes = DenormalScope::flushes();
#pragma omp parallel num_threads(threads)
  {
    const DenormalScope as_the_caller(flushes);
    // OpenMP may grant fewer threads than asked for: the partition follows what was asked, so that results do not
    // change.
    const int granted = omp_get_num_threads();
    for (int worker = omp_get_thread_num(); worker < threads; worker += granted) {
      const Range range = part_of(count, static_cast<std::size_t>(worker), static_cast<std::size_t>(threads));
      if (range.size() > 0) function(context, range);
    }
  }
}

void spin_briefly(char** arguments) {
  // So many looks take 30 to 150 us, somewhat more than a thread takes to wake up: serial pieces of a step are shorter.
  constexpr const char *variable = "GOMP_SPINCOUNT", *looks = "3000";
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv(variable) != nullptr) return;
  if (CoreMask::of(0).count() < 2 || ::setenv(variable, looks, 1) != 0) return;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);  // execv's own link would be its name
  if (!error) ::execv(program.c_str(), arguments);
  ::unsetenv(variable);
}

void use_threads(int threads) { omp_set_num_threads(std::max(threads, 1)); }

}  // namespace ronda
