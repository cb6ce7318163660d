#include <ronda/core/random.hpp>
#include <ronda/data/sample_order.hpp>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace ronda {
namespace {

/// @param last  the places from here on have what they keep
/// @return the new one, at most `until`
template <class Number>
std::size_t shuffle_down(std::span<Number> order, std::size_t last, std::size_t until, const RngKey& key) {
  std::array<std::uint64_t, 16> bounds, counters, others;
  while (last > until && last > others.size()) {
    for (std::size_t i = 0; i < others.size(); ++i) {
      bounds[i] = last - i;
      counters[i] = last - i - 1;
    }
    key.below(bounds, counters, others);
    for (const std::uint64_t other : others) std::swap(order[--last], order[other]);
  }
  for (; last > until; --last) std::swap(order[last - 1], order[key.below(last, last - 1)]);
  return last;
}

template <class Number>
void write_order(std::span<Number> order, bool shuffle, const RngKey& key) {
  std::iota(order.begin(), order.end(), Number{0});
  if (shuffle) shuffle_down(order, order.size(), 0, key);
}

}  // namespace

void SampleOrder::write(std::uint64_t epoch, std::span<std::uint64_t> order) const {
  write_order(order, shuffle_, RngKey(seed_, Purpose::sample_order, epoch));
}

void SampleOrder::write(std::uint64_t epoch, std::span<std::uint32_t> order) const {
  write_order(order, shuffle_, RngKey(seed_, Purpose::sample_order, epoch));
}

std::size_t SampleOrder::write_more(std::uint64_t epoch, std::span<std::uint32_t> order, std::size_t left,
                                    std::size_t count) const {
  if (left == size_) std::iota(order.begin(), order.end(), std::uint32_t{0});
  if (!shuffle_) return 0;
  return shuffle_down(order, left, left - std::min(left, count), RngKey(seed_, Purpose::sample_order, epoch));
}

}  // namespace ronda
