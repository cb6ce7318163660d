#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include <ronda/core/random.hpp>
#include <ronda/data/memory_dataset.hpp>

namespace ronda::test {

/// Noisy images of `classes` fixed patterns: learnable in a few steps, the same everywhere.
inline MemoryDataset toy_images(std::size_t samples, const Shape& shape, std::int32_t classes,
                                std::uint64_t stream = 1) {
  const RngKey pattern(3, Purpose::test, 0), noise(3, Purpose::test, stream), choice(4, Purpose::test, stream);
  const auto pixels = static_cast<std::size_t>(shape.count());
  std::vector<float> inputs;
  std::vector<std::int32_t> labels;
  for (std::size_t n = 0; n < samples; ++n) {
    labels.push_back(static_cast<std::int32_t>(choice.below(static_cast<std::uint64_t>(classes), n)));
    const auto label = static_cast<std::size_t>(labels.back());
    for (std::size_t i = 0; i < pixels; ++i)
      inputs.push_back(pattern.uniform(label * pixels + i) + 0.5F * noise.uniform(n * pixels + i));
  }
  return {std::move(inputs), shape, std::move(labels)};
}

/// ‖a − b‖ / ‖b‖.
inline double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += (double{a.at(i)} - b[i]) * (double{a[i]} - b[i]);
    norm += double{b[i]} * b[i];
  }
  return std::sqrt(difference / norm);
}

}  // namespace ronda::test
