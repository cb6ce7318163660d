#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ronda/layers/graph/backward.hpp>
#include <ronda/layers/graph/lowering.hpp>
#include <ronda/layers/graph/memory.hpp>
#include <ronda/layers/loss.hpp>

namespace ronda::graph {

/// A graph as one device computes it: operations, the calls of backward, where each value is stored, and between which
/// calls.
///
/// Time counts calls: step i of forward is at time i, the loss follows, then backward.
struct Plan {
  Graph graph;
  Lowered lowered;
  std::unique_ptr<LossOperation> loss;  ///< null: none
  Backward backward;
  Memory memory;
  BufferPlan buffers;
  std::vector<std::size_t> output_of;  ///< by the number of a value that a step writes: its buffer
  std::vector<std::size_t> kept_of, between_of, scratch_of;  ///< of each step
  std::size_t loss_scratch = 0;

  [[nodiscard]] std::size_t offset(std::size_t buffer) const { return buffers.offsets[memory.holder_of(buffer)]; }
  [[nodiscard]] std::uint32_t loss_time() const { return static_cast<std::uint32_t>(lowered.steps.size()); }
};

/// @param loss  null: none
[[nodiscard]] Plan make_plan(Graph graph, const Loss* loss, Primitives& primitives, Picker& picker,
                             const ProgramOptions& options);

}  // namespace ronda::graph
