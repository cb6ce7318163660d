#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/reduce_op.hpp>
#include <ronda/runtime/core/event.hpp>
#include <ronda/runtime/core/tensor.hpp>

namespace ronda {

/// How an allreduce is done. `automatic` chooses by placement and size.
enum class AllreduceAlgorithm : std::uint8_t {
  automatic,
  node,          ///< two shots in the node's shared window; needs all ranks on one node and node-shared memory
  ring,          ///< segmented pipelined ring over messages; any layout of ranks
  hierarchical,  ///< `node` inside each node, a ring a slice across nodes
  mpi,           ///< plain MPI_Allreduce, the reference
};
/// auto, node, ring, hierarchical, mpi. Throws InputError that lists them.
[[nodiscard]] AllreduceAlgorithm parse_allreduce(std::string_view name);
[[nodiscard]] std::string_view name_of(AllreduceAlgorithm algorithm) noexcept;

/// An allreduce that will be done many times. All tensors, of any types, are reduced in place, together; every rank
/// gives the same counts and types in the same order.
struct AllreduceSpec {
  std::vector<Tensor> tensors;
  ReduceOp op = ReduceOp::sum;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic;
  std::string label;  ///< for messages: `bucket 3`
};

/// A planned collective. Its memory, messages and coroutine frames were set up when it was planned, so that starting it
/// allocates nothing.
class Collective : public Completion {
 public:
  virtual ~Collective() = default;
  /// Starts once `ready` has happened. Collective: all ranks start the same collectives in the same order; several may
  /// be in flight, but one only once at a time. The tensors belong to the collective until the returned event is done.
  virtual Event start(const Event& ready = {}) = 0;
  /// What it is done by, for reports: `node`, `ring`, …
  [[nodiscard]] virtual AllreduceAlgorithm algorithm() const noexcept = 0;
};

}  // namespace ronda
