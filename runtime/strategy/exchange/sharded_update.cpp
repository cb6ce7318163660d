#include <ronda/core/clock.hpp>
#include <ronda/runtime/strategy/arena_shares.hpp>
#include <ronda/runtime/strategy/exchange/sharded_update.hpp>

#include <cmath>
#include <utility>

namespace ronda {
namespace {

Tensor flat(const Buffer& arena, DType dtype, std::size_t count) {
  return {{Shape{static_cast<std::int64_t>(count)}, dtype, {}}, arena.data(), arena.device()};
}

}  // namespace

ShardedUpdate::ShardedUpdate(Communicator communicator, std::vector<GradientSlot> slots, const Replica& replica,
                             const FusionOptions& options)
    : BucketedAllreduce(communicator, std::move(slots), replica.reduced(), replica.kept_arena(), options),
      spoiled_(communicator) {
  const ReplicaPlan& plan = replica.plan();
  const std::size_t count = plan.dense_elements();
  const auto counts = share_sizes(count, static_cast<std::size_t>(communicator.size()));
  const auto add = [&](const Tensor& all) {
    gatherings_.push_back({communicator.plan(AllgatherSpec{all, counts, "the new parameters"}), all.desc().bytes()});
  };
  add(flat(replica.trained(), DType::float32, count));
  if (plan.mixed()) add(flat(replica.values(), plan.dtype, count));
}

void ShardedUpdate::publish(UpdateOutcome* outcome, Stream& stream) {
  const double begin = steady_seconds();
  for (Gathering& gathering : gatherings_) gathering.done = gathering.all->start(stream.record());
  stream.wait(spoiled_.start(*outcome, stream));
  for (const Gathering& gathering : gatherings_) stream.wait(gathering.done);
  spoiled_.set(outcome);
  exposed_seconds_ += steady_seconds() - begin;
}

std::vector<std::string> ShardedUpdate::report() const {
  auto lines = BucketedAllreduce::report();
  for (const Gathering& gathering : gatherings_) {
    const CollectiveTimes times = gathering.all->times();
    if (times.runs == 0) continue;
    lines.push_back("new parameters: " + std::to_string(gathering.bytes) + " bytes by " +
                    std::string(gathering.all->algorithm()) + " took " +
                    std::to_string(std::llround(times.total / static_cast<double>(times.runs) * 1e6)) +
                    " us in the mean");
  }
  return lines;
}

std::size_t ShardedUpdate::memory() const noexcept {
  std::size_t bytes = BucketedAllreduce::memory() + spoiled_.memory();
  for (const Gathering& gathering : gatherings_) bytes += gathering.all->memory();
  return bytes;
}

}  // namespace ronda
