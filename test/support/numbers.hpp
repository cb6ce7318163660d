#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include <ronda/core/buffer.hpp>

namespace ronda::test {

/// Small integers that differ by place and rank: their sums are exact in float32.
template <class T>
T number_of(std::size_t i, int rank) {
  return static_cast<T>((i * 7 + static_cast<std::size_t>(rank) * 3) % 101);
}

/// They repeat after so many places.
constexpr std::size_t number_period = 101;

template <class T>
void fill_numbers(std::span<T> elements, int rank) {
  std::array<T, number_period> period;
  for (std::size_t i = 0; i < number_period; ++i) period[i] = number_of<T>(i, rank);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = period[i % number_period];
}

/// The sums over all ranks of what `fill_numbers` wrote, from place `first` on.
template <class T>
std::array<T, number_period> sums_of_numbers(int ranks, std::size_t first = 0) {
  std::array<T, number_period> sums{};
  for (std::size_t i = 0; i < number_period; ++i)
    for (int rank = 0; rank < ranks; ++rank) sums[i] += number_of<T>(first + i, rank);
  return sums;
}

/// How many elements are not that sum; `first` is the place of the first.
template <class T>
std::size_t count_wrong(std::span<const T> elements, int ranks, std::size_t first = 0) {
  const auto sums = sums_of_numbers<T>(ranks, first);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) wrong += elements[i] != sums[i % number_period] ? 1 : 0;
  return wrong;
}

/// How many are further from it than `limit`, or no numbers.
template <class T>
std::size_t count_further_than(double limit, std::span<const T> elements, int ranks) {
  const auto sums = sums_of_numbers<T>(ranks);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < elements.size(); ++i)
    wrong += std::abs(elements[i] - sums[i % number_period]) <= limit ? 0 : 1;
  return wrong;
}

template <class T>
std::span<T> elements_in(const Buffer& buffer, std::size_t count) {
  return {reinterpret_cast<T*>(buffer.data()), count};
}

}  // namespace ronda::test
