#include <ronda/core/random.hpp>
#include <ronda/data/sample_order.hpp>

#include <array>
#include <numeric>
#include <utility>

namespace ronda {
namespace {

template <class Number>
void write_order(std::span<Number> order, bool shuffle, const RngKey& key) {
  std::iota(order.begin(), order.end(), Number{0});
  if (!shuffle) return;
  std::size_t last = order.size();  // places from here on have what they keep
  std::array<std::uint64_t, 16> bounds, counters, others;
  while (last > others.size()) {
    for (std::size_t i = 0; i < others.size(); ++i) {
      bounds[i] = last - i;
      counters[i] = last - i - 1;
    }
    key.below(bounds, counters, others);
    for (const std::uint64_t other : others) std::swap(order[--last], order[other]);
  }
  while (last-- > 1) std::swap(order[last], order[key.below(last + 1, last)]);
}

}  // namespace

void SampleOrder::write(std::uint64_t epoch, std::span<std::uint64_t> order) const {
  write_order(order, shuffle_, RngKey(seed_, Purpose::sample_order, epoch));
}

void SampleOrder::write(std::uint64_t epoch, std::span<std::uint32_t> order) const {
  write_order(order, shuffle_, RngKey(seed_, Purpose::sample_order, epoch));
}

}  // namespace ronda
