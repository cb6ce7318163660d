#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ronda {

// A bit for each name of the table, by its number.

inline constexpr std::size_t bits_a_word = 64;
[[nodiscard]] constexpr std::size_t words_for(std::size_t names) noexcept {
  return (names + bits_a_word - 1) / bits_a_word;
}
[[nodiscard]] constexpr std::uint64_t bit_of(std::uint32_t id) noexcept {
  return std::uint64_t{1} << (id % bits_a_word);
}
[[nodiscard]] inline bool has_bit(std::span<const std::uint64_t> words, std::uint32_t id) {
  return (words[id / bits_a_word] & bit_of(id)) != 0;
}

/// Calls `body` with the number of each bit that is set, in ascending order.
template <class Body>
void for_each_bit(std::span<const std::uint64_t> words, const Body& body) {
  for (std::size_t word = 0; word < words.size(); ++word)
    for (std::uint64_t left = words[word]; left != 0; left &= left - 1)
      body(static_cast<std::uint32_t>(word * bits_a_word) + static_cast<std::uint32_t>(std::countr_zero(left)));
}

}  // namespace ronda
