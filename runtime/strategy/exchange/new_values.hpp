#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/optim/updater.hpp>
#include <ronda/runtime/strategy/exchange/step_agreements.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

namespace ronda {

/// Lines of one report, then those of another.
[[nodiscard]] inline std::vector<std::string> joined(std::vector<std::string> lines, std::vector<std::string> more) {
  std::ranges::move(more, std::back_inserter(lines));
  return lines;
}

/// How all ranks get the new values of parameters, of which each has updated its share (share_of_rank).
class NewValues {
 public:
  virtual ~NewValues() = default;
  /// Before the update, by an exchange whose sums may be complete while other ranks still compute: waits until none of
  /// them reads the values that the update writes. Collective.
  virtual void before_update() {}
  /// After every rank's update: all ranks have all values, and `outcome->spoiled` tells of all. In the order of the
  /// stream; allocates nothing. Collective.
  virtual void publish(UpdateOutcome* outcome, Stream& stream) = 0;

  // For reports.

  [[nodiscard]] virtual std::vector<std::string> report() const { return {}; }
  [[nodiscard]] virtual double exposed_seconds() const noexcept { return 0; }
  [[nodiscard]] virtual std::size_t memory() const noexcept { return 0; }
};

/// By an update that has written them to all ranks' memory, on one node: the ranks only wait for one another.
class WrittenValues final : public NewValues {
 public:
  /// Collective.
  explicit WrittenValues(const Communicator& communicator) : meeting_(communicator) {}
  void publish(UpdateOutcome* outcome, Stream& stream) override;

 private:
  NodeMeeting meeting_;
};

/// By an allgather.
class GatheredValues final : public NewValues {
 public:
  /// Collective.
  /// @param replica  has its arenas; outlives this object
  GatheredValues(Communicator communicator, const Replica& replica);
  void publish(UpdateOutcome* outcome, Stream& stream) override;
  [[nodiscard]] std::vector<std::string> report() const override;
  [[nodiscard]] double exposed_seconds() const noexcept override { return exposed_seconds_; }
  [[nodiscard]] std::size_t memory() const noexcept override;

 private:
  struct Gathering {
    std::unique_ptr<Collective> all;
    std::size_t bytes = 0;
    Event done{};
  };

  std::vector<Gathering> gatherings_;  ///< of the values that are trained, and of those that layers read if they differ
  SpoiledAnywhere spoiled_;
  double exposed_seconds_ = 0;
};

/// Where the ranks of a node share one copy of the values, of which each has updated its share: the first rank of each
/// node gathers the shares of the other nodes. Two nodes of two ranks, shares a, b, c, d; capitals are new:
///
///                after the update     after the gathering
///     node 0     A  B  c  d           A  B  C  D
///     node 1     a  b  C  D           A  B  C  D
///
/// So new parameters go once to each node, not to each rank.
class GatheredOneCopy final : public NewValues {
 public:
  /// Collective. Throws InputError, agreed, where the ranks of a node are not numbered one after the other.
  /// @param replica  has its arenas, of which it shares the values (Replica::share_values), float32; outlives this
  /// object
  GatheredOneCopy(Communicator communicator, const Replica& replica);
  /// Returns when all ranks of the node have come: an allreduce is done when all have come to it, and some may be
  /// computing then.
  void before_update() override { static_cast<void>(node_.meet()); }
  void publish(UpdateOutcome* outcome, Stream& stream) override;
  [[nodiscard]] std::vector<std::string> report() const override;
  [[nodiscard]] double exposed_seconds() const noexcept override { return exposed_seconds_; }
  [[nodiscard]] std::size_t memory() const noexcept override;

 private:
  NodeMeeting node_;
  std::unique_ptr<Collective> gathering_;  ///< of the first rank of a node, where there are several
  std::size_t gathered_bytes_;
  SpoiledAnywhere spoiled_;
  double exposed_seconds_ = 0;
};

}  // namespace ronda
