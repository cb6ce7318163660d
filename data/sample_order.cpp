#include <ronda/core/random.hpp>
#include <ronda/data/sample_order.hpp>

#include <numeric>
#include <utility>

namespace ronda {

void SampleOrder::write(std::uint64_t epoch, std::span<std::uint64_t> order) const {
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  if (!shuffle_) return;
  const RngKey key(seed_, Purpose::sample_order, epoch);
  for (std::size_t last = order.size(); last-- > 1;) std::swap(order[last], order[key.below(last + 1, last)]);
}

}  // namespace ronda
