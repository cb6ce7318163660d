#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ronda/runtime/strategy/exchange/bucketed_allreduce.hpp>
#include <ronda/runtime/strategy/exchange/node_meeting.hpp>
#include <ronda/runtime/strategy/exchange/spoiled_anywhere.hpp>
#include <ronda/runtime/strategy/replica.hpp>

namespace ronda {

/// ShardedUpdate where the ranks of a node share one copy of the values: every rank gets all sums, by an allreduce a
/// bucket beside the backward pass, and updates its share of its node's copy; then the first rank of each node gathers
/// the shares of the other nodes. Two nodes of two ranks, shares a, b, c, d; capitals are new:
///
///                after the update     after the gathering
///     node 0     A  B  c  d           A  B  C  D
///     node 1     a  b  C  D           A  B  C  D
///
/// So new parameters go once to each node, not to each rank. For all that NodeReduce does not do: several nodes,
/// compression, allreduces by messages.
class OneCopyUpdate final : public BucketedAllreduce {
 public:
  /// Collective. Throws InputError, agreed, where the ranks of a node are not numbered one after the other.
  /// @param replica  has its arenas, of which it shares the values (Replica::share_values), float32; outlives this
  /// object
  OneCopyUpdate(Communicator communicator, std::vector<GradientSlot> slots, const Replica& replica,
                const FusionOptions& options);

  [[nodiscard]] std::span<const ArenaRange> ranges_to_update(Stream& stream) override;
  void publish(UpdateOutcome* outcome, Stream& stream) override;
  [[nodiscard]] bool moves_alone() const noexcept override { return false; }
  [[nodiscard]] std::vector<std::string> report() const override;
  [[nodiscard]] double exposed_seconds() const noexcept override {
    return BucketedAllreduce::exposed_seconds() + exposed_seconds_;
  }
  [[nodiscard]] std::size_t memory() const noexcept override;

 private:
  NodeMeeting node_;
  std::unique_ptr<Collective> gathering_;  ///< of the first rank of a node, where there are several
  std::size_t gathered_bytes_;
  SpoiledAnywhere spoiled_;
  double exposed_seconds_ = 0;
};

}  // namespace ronda
