#pragma once
#include <string>

#include <ronda/runtime/core/tensor.hpp>

namespace ronda {

/// Who holds a state: all ranks the same, each rank its own, or each rank a piece.
enum class Scope : std::uint8_t { replicated, per_rank, sharded };

/// Something beside parameters that exact continuation needs: momenta, batch statistics, counters.
struct State {
  std::string name;
  Tensor tensor;
  Scope scope = Scope::replicated;
};

/// Is shown every state of a model or an optimizer, in an order that does not change.
class StateVisitor {
 public:
  virtual void visit(const State& state) = 0;

 protected:
  ~StateVisitor() = default;
};

}  // namespace ronda
