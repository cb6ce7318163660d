#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
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

constexpr std::int64_t toy_words = 40;       ///< of the table that texts are made of
constexpr std::int64_t toy_text_length = 5;  ///< tokens of a text

/// Texts of up to five tokens, the rest padding (-1): the label is whether most are from the table's first half.
inline MemoryDataset toy_texts(std::size_t samples) {
  const RngKey draw(5, Purpose::test, "texts");
  std::vector<std::int32_t> tokens, labels;
  for (std::size_t n = 0; n < samples; ++n) {
    int low = 0;
    const int used = static_cast<int>(draw.below(toy_text_length + 1, n));  // also empty texts
    for (int t = 0; t < toy_text_length; ++t) {
      const auto token =
          static_cast<std::int32_t>(draw.below(toy_words, 1000 + n * toy_text_length + static_cast<std::size_t>(t)));
      tokens.push_back(t < used ? token : -1);
      low += t < used && token < toy_words / 2 ? 1 : 0;
    }
    labels.push_back(2 * low > used ? 1 : 0);
  }
  std::vector<Column> columns;
  columns.push_back({"input", Shape{toy_text_length}, std::move(tokens)});
  columns.push_back({"target", Shape{}, std::move(labels)});
  return MemoryDataset(std::move(columns));
}

}  // namespace ronda::test
