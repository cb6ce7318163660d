#include <ronda/runtime/strategy/exchange/spoiled_anywhere.hpp>

#include <span>

namespace ronda {

SpoiledAnywhere::SpoiledAnywhere(Communicator& ranks)
    : flag_(ranks.allocate(sizeof(float), Memory::node_shared)),
      any_(ranks.plan(AllreduceSpec{.tensors = {Tensor(std::span(&flag(), 1))},
                                    .op = ReduceOp::maximum,
                                    .label = "whether an update was finite"})) {}

Event SpoiledAnywhere::start(const UpdateOutcome& outcome, Stream& stream) {
  flag() = outcome.spoiled != 0 ? 1 : 0;
  return any_->start(stream.record());
}

void SpoiledAnywhere::set(UpdateOutcome* outcome) const noexcept { outcome->spoiled = flag() != 0 ? 1 : 0; }

}  // namespace ronda
