#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <ronda/core/random.hpp>
#include <ronda/data/memory_dataset.hpp>

namespace ronda::test {

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
