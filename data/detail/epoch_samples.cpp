#include <ronda/data/detail/epoch_samples.hpp>

#include <utility>

namespace ronda {

EpochSamples::EpochSamples(const SampleOrder& order, bool ahead) : order_(order), left_(order.size()) {
  if (!order.shuffles()) return;
  if (order.size() > SampleOrder::most_short) {
    long_.resize(order.size());
    return;
  }
  short_.resize(order.size());
  if (ahead) next_.resize(order.size());
}

void EpochSamples::set_epoch(std::uint64_t epoch) {
  if (epoch_ == epoch || !order_.shuffles()) return;
  if (epoch == epoch_ + 1 && !next_.empty()) {
    draw_ahead(left_);
    std::swap(short_, next_);
  } else if (long_.empty()) {
    order_.write(epoch, short_);
  } else {
    order_.write(epoch, long_);
  }
  epoch_ = epoch;
  left_ = order_.size();
}

void EpochSamples::draw_ahead(std::size_t places) {
  if (left_ > 0 && !next_.empty()) left_ = order_.write_more(epoch_ + 1, next_, left_, places);
}

}  // namespace ronda
