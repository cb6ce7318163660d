#include <ronda/collectives/host/node/touch_pages.hpp>
#include <ronda/runtime/strategy/node_update.hpp>

#include <algorithm>

namespace ronda {
namespace {

constexpr std::size_t line = 16;  ///< floats: ranks write to cache lines of their own

float* floats(std::byte* arena) { return reinterpret_cast<float*>(arena); }

Tensor tensor_of(const Buffer& arena) { return Tensor(std::span(floats(arena.data()), arena.bytes() / sizeof(float))); }

}  // namespace

std::unique_ptr<NodeUpdate> NodeUpdate::make(const Communicator& communicator, Optimizer& optimizer,
                                             const Buffer& values, const Buffer& gradients, int threads) {
  Communicator group = communicator;
  if (group.topology().nodes > 1) return nullptr;
  const auto all_values = group.copies_on_node(tensor_of(values)),
             all_gradients = group.copies_on_node(tensor_of(gradients));
  if (all_values.empty() || all_gradients.empty()) return nullptr;
  return std::unique_ptr<NodeUpdate>(
      new NodeUpdate(group, optimizer, all_values, all_gradients, values.bytes() / sizeof(float), threads));
}

NodeUpdate::NodeUpdate(const Communicator& communicator, Optimizer& optimizer, const std::vector<std::byte*>& values,
                       const std::vector<std::byte*>& gradients, std::size_t count, int threads)
    : communicator_(communicator),
      optimizer_(optimizer),
      stream_(std::max(threads, 1)),
      count_(count),
      rank_(static_cast<std::size_t>(communicator_.rank())),
      ranks_(static_cast<std::size_t>(communicator_.size())),
      meeting_memory_(communicator_.allocate(sizeof(float), Memory::node_shared)),
      meeting_(
          communicator_.plan(AllreduceSpec{.tensors = {tensor_of(meeting_memory_)}, .label = "the update of a node"})) {
  const Range mine = part_of_rank(rank_);
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    if (rank > 0) more_gradients_.push_back(floats(gradients[rank]) + mine.begin);
    if (rank != rank_) copies_.push_back(floats(values[rank]) + mine.begin);
    for (const std::byte* arena : {values[rank], gradients[rank]})
      touch_pages({arena + mine.begin * sizeof(float), mine.size() * sizeof(float)});
  }
  own_gradients_ = floats(gradients[rank_]) + mine.begin;
  part_ = {floats(values[rank_]) + mine.begin, floats(gradients[0]) + mine.begin, mine.size(), more_gradients_,
           copies_};
}

Range NodeUpdate::part_of_rank(std::size_t rank) const noexcept {
  const Range lines = part_of((count_ + line - 1) / line, rank, ranks_);
  return {std::min(lines.begin * line, count_), std::min(lines.end * line, count_)};
}

bool NodeUpdate::run(Gradients gradients, const StepScalars& scalars) {
  ArenaRange part = part_;
  if (gradients == Gradients::summed) {
    part.gradients = own_gradients_;
    part.more_gradients = {};
  }
  static_cast<void>(meet());
  return meet(optimizer_.step(part, scalars, stream_));
}

/// Goes on when all ranks have come; what they wrote before is seen then. Whether it is good for all of them.
bool NodeUpdate::meet(bool good) {
  float& bad = *floats(meeting_memory_.data());
  bad = good ? 0 : 1;
  meeting_->start().wait();
  return bad == 0;
}

void NodeUpdate::gather(std::span<float* const> states) {
  std::vector<std::size_t> counts;
  for (std::size_t rank = 0; rank < ranks_; ++rank) counts.push_back(part_of_rank(rank).size());
  for (float* state : states)
    communicator_.plan(AllgatherSpec{Tensor(std::span(state, count_)), counts, "the optimizer's state"})
        ->start()
        .wait();
}

}  // namespace ronda
