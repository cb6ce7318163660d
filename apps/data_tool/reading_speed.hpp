#pragma once
#include <cstddef>

#include <ronda/data/dataset.hpp>

#include "../progress.hpp"

namespace ronda::apps {

struct ReadingSpeed {
  std::size_t samples = 0;
  double seconds = 0;
  [[nodiscard]] double samples_per_second() const noexcept { return static_cast<double>(samples) / seconds; }
};

/// Reads batches in random order, as a training does, for about `seconds`, after one that does not count.
/// @param seed  of the order and of random changes
/// Throws what the dataset throws.
[[nodiscard]] ReadingSpeed measure_reading(const Dataset& data, std::size_t batch_size, double seconds,
                                           std::uint64_t seed, Progress& progress);

}  // namespace ronda::apps
