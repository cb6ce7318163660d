#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/runtime/strategy/exchange/bucketed_allreduce.hpp>
#include <ronda/runtime/strategy/exchange/step_agreements.hpp>

namespace ronda {

/// The update of a node's replicas, shared out among its ranks. Each has one range of the arena; of that range it
/// sums all ranks' gradients, updates its own replica and writes the new values into all others, in one pass. Three
/// ranks, ranges a, b, c; the work of rank 1:
///
///                                 before          rank 1         after
///     values, on all ranks        a   b   c       a   B   c      A   B   C
///     gradients of rank r         ar  br  cr      B from b0 + b1 + b2
///     rank 1's optimizer state    -   b   -           with b     -   B   -
///
/// Where the values of all ranks are one memory (Memory::one_a_node) they are written there, once.
///
/// An allreduce of n ranks' arenas and n whole updates move 7 arenas a rank through memory (with momentum: the
/// reduction reads one and writes one, the update reads three and writes two); this moves 2 + 4/n. So it pays where
/// arenas are larger than the caches. The sums have the order of the node's allreduce and an update looks at one
/// element at a time: the bits are the same either way.
///
/// It is the first stage of Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models",
/// SC 2020, done for speed: memory for the states is there on every rank, but each knows its own range alone, until
/// they are gathered. With MirroredOptions::divide_states it is done for memory as well: the other ranges have none.
class NodeReduce final : public BucketedAllreduce {
 public:
  /// Null where the ranks are not all on one node, or the arenas not in its shared memory. Collective. The arenas
  /// outlive this object.
  /// @param values, gradients  float32 arenas of equal length, from `communicator.allocate`; the values may be
  /// one_a_node
  /// @param count              of their elements, the first, that the ranks share out
  static std::unique_ptr<NodeReduce> make(const Communicator& communicator, const std::vector<GradientSlot>& slots,
                                          const Buffer& values, const Buffer& gradients, std::size_t count,
                                          FusionOptions options);

  void reduce(Sums wanted, Stream& stream) override;
  void update(FunctionRef<void(const ArenaRange&)> apply, Stream& stream) override;
  void publish(UpdateOutcome* outcome, Stream& stream) override;
  void gather(std::span<float* const> states) override;
  [[nodiscard]] ExchangeReport report() const override;

 private:
  NodeReduce(const Communicator& communicator, const std::vector<GradientSlot>& slots, const Buffer& gradients,
             std::size_t count, const FusionOptions& options, const std::vector<std::byte*>& all_values,
             const std::vector<std::byte*>& all_gradients);
  Communicator communicator_;
  std::size_t count_;
  std::vector<const float*> more_gradients_;  ///< this rank's range of them, of all ranks but the first
  std::vector<float*> copies_;                ///< this rank's range of the other replicas
  ArenaRange to_sum_;                         ///< with the gradients of all ranks
  ArenaRange summed_;                         ///< with this rank's, which are sums
  Sums reduced_ = Sums::of_range;
  NodeMeeting meeting_;
};

}  // namespace ronda
