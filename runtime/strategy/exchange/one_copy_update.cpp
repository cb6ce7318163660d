#include <ronda/core/clock.hpp>
#include <ronda/runtime/strategy/arena_shares.hpp>
#include <ronda/runtime/strategy/exchange/one_copy_update.hpp>

#include <cmath>
#include <utility>

namespace ronda {
namespace {

/// The ranks of this rank's node.
Communicator ranks_on_node(const Communicator& communicator) {
  return communicator.split(communicator.topology().node, communicator.rank());
}

/// Collective.
std::vector<std::size_t> elements_by_node(Communicator& communicator, std::size_t count) {
  std::vector<std::int64_t> nodes(static_cast<std::size_t>(communicator.size()));
  auto mine = static_cast<std::int64_t>(communicator.topology().node);
  communicator.allgather(Tensor(std::span(&mine, 1)), Tensor(std::span(nodes)));
  std::vector<std::size_t> elements;
  agree(communicator, [&] { elements = share_sizes_by_node(count, nodes); });
  return elements;
}

}  // namespace

OneCopyUpdate::OneCopyUpdate(Communicator communicator, std::vector<GradientSlot> slots, const Replica& replica,
                             const FusionOptions& options)
    : BucketedAllreduce(communicator, std::move(slots), replica.reduced(), replica.kept_arena(), options),
      node_(ranks_on_node(communicator)),
      gathered_bytes_(replica.plan().dense_bytes),
      spoiled_(communicator) {
  const std::size_t count = replica.plan().dense_elements();
  const auto counts = elements_by_node(communicator, count);
  const bool first = communicator.topology().rank_on_node == 0;
  Communicator firsts = communicator.split(first ? 0 : 1, communicator.rank());
  if (first && counts.size() > 1)
    gathering_ = firsts.plan(AllgatherSpec{floats_in(replica.values(), {0, count}), counts, "the new parameters"});
}

/// Nobody reads the values any more: an allreduce is done when all have come to it, and some may be computing then.
std::span<const ArenaRange> OneCopyUpdate::ranges_to_update(Stream& stream) {
  static_cast<void>(node_.meet());
  return BucketedAllreduce::ranges_to_update(stream);
}

void OneCopyUpdate::publish(UpdateOutcome* outcome, Stream& stream) {
  const double begin = steady_seconds();
  const Event told = spoiled_.start(*outcome, stream);
  static_cast<void>(node_.meet());
  if (gathering_ != nullptr) gathering_->start(stream.record()).wait();
  stream.wait(told);
  static_cast<void>(node_.meet());
  spoiled_.set(outcome);
  exposed_seconds_ += steady_seconds() - begin;
}

std::vector<std::string> OneCopyUpdate::report() const {
  auto lines = BucketedAllreduce::report();
  const CollectiveTimes times = gathering_ != nullptr ? gathering_->times() : CollectiveTimes{};
  if (times.runs > 0)
    lines.push_back("new parameters, between nodes: " + std::to_string(gathered_bytes_) + " bytes by " +
                    std::string(gathering_->algorithm()) + " took " +
                    std::to_string(std::llround(times.total / static_cast<double>(times.runs) * 1e6)) +
                    " us in the mean");
  return lines;
}

std::size_t OneCopyUpdate::memory() const noexcept {
  return BucketedAllreduce::memory() + spoiled_.memory() + (gathering_ != nullptr ? gathering_->memory() : 0);
}

}  // namespace ronda
