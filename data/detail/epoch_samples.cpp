#include <ronda/data/detail/epoch_samples.hpp>

namespace ronda {

EpochSamples::EpochSamples(const SampleOrder& order) : order_(order) {
  if (!order.shuffles()) return;
  if (order.size() <= SampleOrder::most_short)
    short_.resize(order.size());
  else
    long_.resize(order.size());
}

void EpochSamples::set_epoch(std::uint64_t epoch) {
  if (epoch_ == epoch || !order_.shuffles()) return;
  if (long_.empty())
    order_.write(epoch, short_);
  else
    order_.write(epoch, long_);
  epoch_ = epoch;
}

}  // namespace ronda
