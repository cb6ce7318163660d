#include <ronda/core/clock.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/sharded/sharded_gradients.hpp>

#include <new>
#include <utility>

namespace ronda {

ShardedGradients::ShardedGradients(Communicator communicator, Parts parts)
    : parts_(std::move(parts)),
      ready_(parts_.replica.plan().slots, parts_.ring.buckets),
      updated_{reinterpret_cast<float*>(parts_.replica.trained().data()) + parts_.replica.kept().begin,
               reinterpret_cast<const float*>(parts_.share.data()),
               parts_.replica.kept().size(),
               {},
               parts_.copies},
      control_memory_(communicator.allocate(sizeof(StepControl), Memory::node_shared)),
      norms_(communicator, "the squared norms of the shares") {
  for (FusionBuffer::Bucket& bucket : parts_.ring.buckets) bucket.algorithm = parts_.sums->algorithm();
  auto* const control = new (control_memory_.data()) StepControl();
  control_ = communicator.plan(
      AllreduceSpec{.tensors = {Tensor(std::span(&control->loss, StepControl::count))}, .label = "the control block"});
}

StepControl& ShardedGradients::control() noexcept { return *reinterpret_cast<StepControl*>(control_memory_.data()); }

void ShardedGradients::begin() {
  if (passes_ > 0) finish_pass();
  ready_.begin();
  started_ = 0;
  parts_.sums->begin(passes_++ > 0);
}

void ShardedGradients::mark_ready(ParameterId id, Stream& stream) {
  ready_.mark(id);
  start_full_buckets(stream);
  parts_.sums->poll();
}

/// Backward has not begun with what comes after them, and may only when there is room.
void ShardedGradients::start_full_buckets(Stream& stream) {
  if (started_ == ready_.full()) return;
  const double begin = steady_seconds();
  for (; started_ < ready_.full(); ++started_) parts_.sums->start(stream);
  parts_.sums->wait_until_summed(parts_.ring.summed_before[started_]);
  exposed_seconds_ += steady_seconds() - begin;
}

void ShardedGradients::finish_pass() {
  ready_.require_all();
  const double begin = steady_seconds();
  parts_.sums->finish();
  exposed_seconds_ += steady_seconds() - begin;
}

/// All ranks have finished when the control block is summed: so each rank's share is complete, and nobody reads
/// gradients or parameters any more.
void ShardedGradients::reduce(Sums /*wanted*/, Stream& stream) {
  finish_pass();
  passes_ = 0;
  const double begin = steady_seconds();
  stream.wait(control_->start(stream.record()));
  exposed_seconds_ += steady_seconds() - begin;
}

std::vector<std::string> ShardedGradients::lines_of_plan() const {
  std::vector<std::string> lines;
  for (const FusionBuffer::Bucket& bucket : parts_.ring.buckets)
    lines.push_back(label_of_bucket(lines.size()) + ": slots " + std::to_string(bucket.first_slot) + " to " +
                    std::to_string(bucket.end_slot) + ", " + std::to_string(bucket.bytes) + " bytes by " +
                    bucket.algorithm + ", kept by shares");
  lines.push_back("gradients take " + std::to_string(parts_.ring.memory.memory()) + " bytes until they are summed");
  return lines;
}

ExchangeReport ShardedGradients::report() const {
  return {.plan = lines_of_plan(),
          .costs = joined(parts_.sums->report(), parts_.values->report()),
          .memory = parts_.sums->memory() + parts_.values->memory(),
          .buckets = parts_.ring.buckets};
}

}  // namespace ronda
