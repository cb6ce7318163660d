#include <ronda/collectives/host/algorithms/folding.hpp>
#include <ronda/collectives/host/algorithms/link_probe.hpp>

#include <algorithm>
#include <utility>

namespace ronda {

LinkProbe::LinkProbe(std::unique_ptr<Transport> transport, Pattern pattern, std::size_t largest_bytes,
                     std::function<double()> clock)
    : transport_(std::move(transport)),
      clock_(std::move(clock)),
      lanes_(pattern == Pattern::flow ? Ring::most_lanes : 1),
      outbox_(Buffer::host(lanes_ * largest_bytes)),
      inbox_(Buffer::host(lanes_ * largest_bytes)) {
  const int ranks = transport_->size(), rank = transport_->rank();
  const int power = Folding(rank, ranks).power();
  if (pattern == Pattern::flow) {
    to_ = (rank + 1) % ranks;
    from_ = (rank + ranks - 1) % ranks;
  } else {
    to_ = from_ = rank < power ? rank ^ (power / 2) : rank;
  }
}

void LinkProbe::set(std::size_t bytes, int uncounted, int repetitions) noexcept {
  bytes_ = bytes;
  uncounted_ = uncounted;
  repetitions_ = repetitions;
}

Task LinkProbe::run() {
  seconds_ = {};
  if (to_ == transport_->rank()) co_return;
  const int group = std::max(1, repetitions_ / static_cast<int>(groups)), end = group * static_cast<int>(groups);
  double begin = 0;
  for (std::size_t lane = 0; lane < lanes_; ++lane) start(lane);
  for (int repetition = 1 - uncounted_; repetition <= end; ++repetition) {
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      Request& incoming = incoming_[lane];
      Request& outgoing = outgoing_[lane];
      co_await incoming;
      co_await outgoing;
      if (repetition < end) start(lane);
    }
    if (repetition < 0 || repetition % group != 0) continue;
    const double now = clock_();
    if (repetition > 0)
      seconds_[static_cast<std::size_t>(repetition / group - 1)] = (now - begin) / group / static_cast<double>(lanes_);
    begin = now;
  }
}

void LinkProbe::start(std::size_t lane) {
  incoming_[lane] = transport_->receive(from_, {inbox_.data() + lane * bytes_, bytes_});
  outgoing_[lane] = transport_->send(to_, {outbox_.data() + lane * bytes_, bytes_});
}

}  // namespace ronda
