#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/optim/updater.hpp>

namespace ronda {

/// Where the ranks of a node that work in one another's memory wait for one another.
class NodeMeeting {
 public:
  /// Collective over `node`.
  explicit NodeMeeting(Communicator node, const std::string& label = "the update of a node")
      : memory_(node.allocate(sizeof(float), Memory::node_shared)),
        sum_(node.plan(
            AllreduceSpec{.tensors = {Tensor({Shape{1}, DType::float32, {}}, memory_.data())}, .label = label})) {}

  /// This rank has come; the event is done when all have: what they wrote before is seen then. Before the next.
  [[nodiscard]] Event come(bool good = true) {
    bad() = good ? 0 : 1;
    return sum_->start();
  }
  /// Goes on when all ranks have come. Whether it is good for all of them.
  bool meet(bool good = true) {
    come(good).wait();
    return bad() == 0;
  }

 private:
  [[nodiscard]] float& bad() noexcept { return *reinterpret_cast<float*>(memory_.data()); }

  Buffer memory_;
  std::unique_ptr<Collective> sum_;
};

/// Whether an update was spoiled on any of some ranks (UpdateOutcome::spoiled), where each has updated a part.
class SpoiledAnywhere {
 public:
  /// Collective over `ranks`.
  explicit SpoiledAnywhere(Communicator& ranks);

  /// Tells all of this rank's update. Allocates nothing. Collective.
  [[nodiscard]] Event start(const UpdateOutcome& outcome, Stream& stream);
  /// When that is done: `outcome` tells of all.
  void set(UpdateOutcome* outcome) const noexcept;
  [[nodiscard]] std::size_t memory() const noexcept { return any_->memory(); }

 private:
  [[nodiscard]] float& flag() const noexcept { return *reinterpret_cast<float*>(flag_.data()); }

  Buffer flag_;
  std::unique_ptr<Collective> any_;
};

/// Adds up a number of each rank in the order of ranks, by whatever algorithm: each sum of the allreduce has one number
/// that is not zero.
class SumInOrder {
 public:
  /// Collective.
  SumInOrder(Communicator& ranks, const std::string& label);
  /// Allocates nothing. Collective.
  [[nodiscard]] double sum(double mine);
  /// Seconds that it has waited so far.
  [[nodiscard]] double exposed_seconds() const noexcept { return exposed_seconds_; }

 private:
  std::size_t rank_;
  std::vector<double> numbers_;  ///< by rank
  std::unique_ptr<Collective> all_;
  double exposed_seconds_ = 0;
};

}  // namespace ronda
