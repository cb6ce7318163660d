#pragma once
#include <memory>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>

namespace ronda {

/// Where the ranks of a node that work in one another's memory wait for one another.
class NodeMeeting {
 public:
  /// Collective over `node`.
  explicit NodeMeeting(Communicator node)
      : memory_(node.allocate(sizeof(float), Memory::node_shared)),
        sum_(node.plan(AllreduceSpec{.tensors = {Tensor({Shape{1}, DType::float32, {}}, memory_.data())},
                                     .label = "the update of a node"})) {}

  /// Goes on when all ranks have come; what they wrote before is seen then. Whether it is good for all of them.
  bool meet(bool good = true) {
    float& bad = *reinterpret_cast<float*>(memory_.data());
    bad = good ? 0 : 1;
    sum_->start().wait();
    return bad == 0;
  }

 private:
  Buffer memory_;
  std::unique_ptr<Collective> sum_;
};

}  // namespace ronda
