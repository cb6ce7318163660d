#pragma once
#include <memory>
#include <string>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>

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

}  // namespace ronda
