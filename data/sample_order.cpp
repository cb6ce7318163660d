#include <ronda/core/random.hpp>
#include <ronda/data/sample_order.hpp>

#include <numeric>
#include <utility>

namespace ronda {
namespace {

template <class Number>
void write_order(std::span<Number> order, bool shuffle, const RngKey& key) {
  std::iota(order.begin(), order.end(), Number{0});
  if (!shuffle) return;
  for (std::size_t last = order.size(); last-- > 1;) std::swap(order[last], order[key.below(last + 1, last)]);
}

}  // namespace

void SampleOrder::write(std::uint64_t epoch, std::span<std::uint64_t> order) const {
  write_order(order, shuffle_, RngKey(seed_, Purpose::sample_order, epoch));
}

void SampleOrder::write(std::uint64_t epoch, std::span<std::uint32_t> order) const {
  write_order(order, shuffle_, RngKey(seed_, Purpose::sample_order, epoch));
}

}  // namespace ronda
