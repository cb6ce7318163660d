#include <ronda/collectives/reduction.hpp>
#include <ronda/runtime/core/stream.hpp>
#include <ronda/runtime/strategy/node_update.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace ronda {
namespace {

constexpr std::size_t line = 16;     ///< floats: ranks write to cache lines of their own
constexpr std::size_t block = 4096;  ///< floats that are summed, updated and copied while they are in cache

float* floats(std::byte* arena) { return reinterpret_cast<float*>(arena); }

Tensor tensor_of(const Buffer& arena) { return Tensor(std::span(floats(arena.data()), arena.bytes() / sizeof(float))); }

}  // namespace

std::unique_ptr<NodeUpdate> NodeUpdate::make(const Communicator& communicator, Optimizer& optimizer,
                                             const Buffer& values, const Buffer& gradients, int threads) {
  Communicator group = communicator;
  if (group.topology().nodes > 1) return nullptr;
  auto all_values = group.copies_on_node(tensor_of(values)), all_gradients = group.copies_on_node(tensor_of(gradients));
  if (all_values.empty() || all_gradients.empty()) return nullptr;
  return std::unique_ptr<NodeUpdate>(new NodeUpdate(group, optimizer, std::move(all_values), std::move(all_gradients),
                                                    values.bytes() / sizeof(float), threads));
}

NodeUpdate::NodeUpdate(const Communicator& communicator, Optimizer& optimizer, std::vector<std::byte*> values,
                       std::vector<std::byte*> gradients, std::size_t count, int threads)
    : communicator_(communicator),
      optimizer_(optimizer),
      values_(std::move(values)),
      gradients_(std::move(gradients)),
      count_(count),
      rank_(static_cast<std::size_t>(communicator_.rank())),
      ranks_(static_cast<std::size_t>(communicator_.size())),
      workers_(static_cast<std::size_t>(std::max(threads, 1))),
      meeting_memory_(communicator_.allocate(sizeof(float), Memory::node_shared)),
      meeting_(
          communicator_.plan(AllreduceSpec{.tensors = {tensor_of(meeting_memory_)}, .label = "the update of a node"})) {
  for (Worker& worker : workers_) worker = {Buffer::host(block * sizeof(float)), gradients_};
}

Range NodeUpdate::part_of_rank(std::size_t rank) const noexcept {
  const Range lines = part_of((count_ + line - 1) / line, rank, ranks_);
  return {std::min(lines.begin * line, count_), std::min(lines.end * line, count_)};
}

void NodeUpdate::run(Gradients gradients, const StepScalars& scalars) {
  meet();
  const Range mine = part_of_rank(rank_);
  const auto threads = static_cast<int>(workers_.size());
  parallel_for(threads, workers_.size(), [&](Range range) {
    for (std::size_t worker = range.begin; worker < range.end; ++worker) {
      const Range blocks = part_of((mine.size() + block - 1) / block, worker, workers_.size());
      for (std::size_t i = blocks.begin; i < blocks.end; ++i)
        update({mine.begin + i * block, std::min(mine.begin + (i + 1) * block, mine.end)}, gradients, scalars,
               workers_[worker]);
    }
  });
  meet();
}

void NodeUpdate::update(Range range, Gradients gradients, const StepScalars& scalars, Worker& worker) {
  const std::size_t offset = range.begin * sizeof(float);
  const auto* sums = reinterpret_cast<const float*>(gradients_[rank_] + offset);
  if (gradients == Gradients::own) {
    for (std::size_t rank = 0; rank < ranks_; ++rank) worker.gradients[rank] = gradients_[rank] + offset;
    std::byte* const cached = worker.sums.data();
    reduce_copies({ReduceOp::sum, communicator_.size()}, worker.gradients, DType::float32, {0, range.size()},
                  {&cached, 1});
    sums = floats(cached);
  }
  CpuStream alone(1);
  optimizer_.step({floats(values_[rank_] + offset), sums, range.size()}, scalars, alone);
  for (std::size_t rank = 0; rank < ranks_; ++rank)
    if (rank != rank_) std::memcpy(values_[rank] + offset, values_[rank_] + offset, range.size() * sizeof(float));
}

/// Goes on when all ranks have come; what they wrote before is seen then.
void NodeUpdate::meet() { meeting_->start().wait(); }

void NodeUpdate::gather(std::span<float* const> states) {
  std::vector<std::size_t> counts;
  for (std::size_t rank = 0; rank < ranks_; ++rank) counts.push_back(part_of_rank(rank).size());
  for (float* state : states)
    communicator_.plan(AllgatherSpec{Tensor(std::span(state, count_)), counts, "the optimizer's state"})
        ->start()
        .wait();
}

}  // namespace ronda
