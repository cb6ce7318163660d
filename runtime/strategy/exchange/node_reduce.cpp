#include <ronda/collectives/host/node/touch_pages.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/exchange/node_reduce.hpp>
#include <ronda/runtime/strategy/step/strategy_plan.hpp>

namespace ronda {
namespace {

float* floats(std::byte* arena) { return reinterpret_cast<float*>(arena); }

Tensor tensor_of(const Buffer& arena) { return Tensor(std::span(floats(arena.data()), arena.bytes() / sizeof(float))); }

}  // namespace

std::unique_ptr<NodeReduce> NodeReduce::make(const Communicator& communicator, const std::vector<GradientSlot>& slots,
                                             const Buffer& values, const Buffer& gradients, std::size_t count,
                                             FusionOptions options) {
  Communicator group = communicator;
  if (group.topology().nodes > 1) return nullptr;
  const auto all_values = group.copies_on_node(tensor_of(values)),
             all_gradients = group.copies_on_node(tensor_of(gradients));
  if (all_values.empty() || all_gradients.empty()) return nullptr;
  options.late = true;
  return std::unique_ptr<NodeReduce>(
      new NodeReduce(communicator, slots, gradients, count, options, all_values, all_gradients));
}

NodeReduce::NodeReduce(const Communicator& communicator, const std::vector<GradientSlot>& slots,
                       const Buffer& gradients, std::size_t count, const FusionOptions& options,
                       const std::vector<std::byte*>& all_values, const std::vector<std::byte*>& all_gradients)
    : BucketedAllreduce(communicator, slots, gradients, {}, options),
      communicator_(communicator),
      count_(count),
      meeting_(communicator) {
  const auto me = static_cast<std::size_t>(communicator_.rank());
  const Range mine = share_of_rank(count_, me, static_cast<std::size_t>(communicator_.size()));
  for (std::size_t rank = 0; rank < all_values.size(); ++rank) {
    if (rank > 0) more_gradients_.push_back(floats(all_gradients[rank]) + mine.begin);
    if (all_values[rank] != all_values[me]) copies_.push_back(floats(all_values[rank]) + mine.begin);
    for (const std::byte* arena : {all_values[rank], all_gradients[rank]})
      touch_pages({arena + mine.begin * sizeof(float), mine.size() * sizeof(float)});
  }
  to_sum_ = {floats(all_values[me]) + mine.begin, floats(all_gradients[0]) + mine.begin, mine.size(), more_gradients_,
             copies_};
  summed_ = to_sum_;
  summed_.gradients = floats(all_gradients[me]) + mine.begin;
  summed_.more_gradients = {};
}

void NodeReduce::reduce(Sums wanted, Stream& stream) {
  reduced_ = wanted;
  if (wanted == Sums::of_all)
    buckets_.wait(stream);
  else
    buckets_.wait_for_control(stream);
}

void NodeReduce::update(FunctionRef<void(const ArenaRange&)> apply, Stream& /*stream*/) {
  static_cast<void>(meeting_.meet());
  apply(reduced_ == Sums::of_all ? summed_ : to_sum_);
}

void NodeReduce::publish(UpdateOutcome* outcome, Stream& /*stream*/) {
  outcome->spoiled = meeting_.meet(outcome->spoiled == 0) ? 0 : 1;
}

void NodeReduce::gather(std::span<float* const> states) {
  const auto counts = share_sizes(count_, static_cast<std::size_t>(communicator_.size()));
  for (float* state : states)
    communicator_.plan(AllgatherSpec{Tensor(std::span(state, count_)), counts, "the optimizer's state"})
        ->start()
        .wait();
}

ExchangeReport NodeReduce::report() const {
  ExchangeReport report = BucketedAllreduce::report();
  report.plan.emplace_back(update_by_parts_line);
  return report;
}

}  // namespace ronda
