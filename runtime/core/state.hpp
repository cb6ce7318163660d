#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/runtime/core/tensor.hpp>

namespace ronda {

/// Who holds a state: all ranks the same, each rank its own, or each rank a piece.
enum class Scope : std::uint8_t { replicated, per_rank, sharded };

/// Something that exact continuation needs: a parameter, its momentum, batch statistics.
struct State {
  std::string name;
  Tensor tensor;
  Scope scope = Scope::replicated;
  std::optional<TensorDesc> flattened = {};  ///< as in Parameter: what belongs to one lies as it does
};

/// A float32 state in file layout: row-major, columns in (C, H, W) order where they were flattened. The bits are kept.
[[nodiscard]] std::vector<float> to_file(const State& state);
/// The inverse; `file` has as many elements as the state's logical shape. Padding stays as it is.
void from_file(const State& state, std::span<const float> file);

/// Is shown every state of a model or an optimizer, in an order that does not change.
class StateVisitor {
 public:
  virtual void visit(const State& state) = 0;

 protected:
  ~StateVisitor() = default;
};

}  // namespace ronda
