#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/optim/optimizer.hpp>

namespace ronda {

/// One update of the replicas of a node, shared out among its ranks. Each has one part of the arena; of that part it
/// sums all ranks' gradients, updates its own replica and writes the new values into all others, in one pass. Three
/// ranks, parts a, b, c; what rank 1 does:
///
///                                 before          rank 1         after
///     values, on all ranks        a   b   c       a   B   c      A   B   C
///     gradients of rank r         ar  br  cr      B from b0 + b1 + b2
///     rank 1's optimizer state    -   b   -           with b     -   B   -
///
/// An allreduce of n ranks' arenas and n whole updates move 7 arenas a rank through memory (with momentum: the
/// reduction reads one and writes one, the update reads three and writes two); this moves 2 + 4/n. So it pays where
/// arenas are larger than the caches. The sums have the order of the node's allreduce and an update looks at one
/// element at a time: the bits are the same either way.
///
/// It is the first stage of Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models",
/// SC 2020, done for speed: memory for the states is there on every rank, but each knows its own part alone, until they
/// are gathered.
class NodeUpdate {
 public:
  /// Which gradients `run` is given.
  enum class Gradients : std::uint8_t { own, summed };

  /// Null where the ranks are not all on one node, or the arenas not in its shared memory. Collective. Arenas and
  /// optimizer outlive this object; the optimizer is bound to `values` before the first run.
  /// @param values, gradients  float32 arenas of equal length, from `communicator.allocate`
  static std::unique_ptr<NodeUpdate> make(const Communicator& communicator, Optimizer& optimizer, const Buffer& values,
                                          const Buffer& gradients, int threads);

  /// Collective. All ranks' gradients are complete on their own ranks when they call this, and nobody reads parameters.
  /// Returns when all replicas are updated: whether all ranks' parts are finite. Allocates nothing.
  bool run(Gradients gradients, const StepScalars& scalars);

  /// Makes states, of which each rank knows its part, whole on all. Collective.
  /// @param states  an arena each
  void gather(std::span<float* const> states);

 private:
  NodeUpdate(const Communicator& communicator, Optimizer& optimizer, const std::vector<std::byte*>& values,
             const std::vector<std::byte*>& gradients, std::size_t count, int threads);
  [[nodiscard]] Range part_of_rank(std::size_t rank) const noexcept;
  bool meet(bool good = true);

  Communicator communicator_;
  Optimizer& optimizer_;
  CpuStream stream_;
  std::size_t count_, rank_, ranks_;
  std::vector<const float*> more_gradients_;  ///< this rank's part of them, of all ranks but the first
  std::vector<float*> copies_;                ///< this rank's part of the other replicas
  ArenaRange part_;                           ///< with the gradients of all ranks
  const float* own_gradients_;
  Buffer meeting_memory_;
  std::unique_ptr<Collective> meeting_;
};

}  // namespace ronda
