#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include <ronda/layers/layer.hpp>

namespace ronda {

/// A stretch of the planning. Backward goes through the planning from its end to its beginning, so memory that is used
/// in two stretches that do not meet can be the same.
struct Stretch {
  std::uint32_t from = 0, to = 0;
  [[nodiscard]] bool meets(const Stretch& other) const noexcept { return from <= other.to && other.from <= to; }
};

/// Which layer was planned within which, and so how long the gradients that they ask for are in use.
///
/// In a chain, a layer's gradient is used by the layer before it:
///
///     planning   |-- conv1 --|-- conv2 --|-- dense --|
///     dense's gradient       |=======================|
///     conv2's    |=======================|                  the same memory as the gradient of what follows dense
///
/// A layer that may pass on what it is given (see GradientFlow) prolongs that to the layer before it; within one that
/// nothing is known of, what its children return stays as long as it runs, and as long as what it returns.
class PlanTree {
 public:
  PlanTree() : nodes_(1) { nodes_[0].flow = GradientFlow::chain; }

  /// A layer is being planned from here on to `leave`, within the one that is being planned now.
  void enter(GradientFlow flow);
  /// @param flow  what is known of it now
  void leave(GradientFlow flow);
  /// Node 0 is the whole plan; then layers in the order in which their planning began.
  [[nodiscard]] std::size_t current() const noexcept { return current_; }
  /// Whether what the current layer gives goes on to layers of the same Sequential.
  [[nodiscard]] bool in_chain() const noexcept;

  /// Once all is planned: where a gradient that `node` has asked for is in use, and where its calls are.
  [[nodiscard]] Stretch gradient_of(std::size_t node) const;
  [[nodiscard]] Stretch calls_of(std::size_t node) const { return {nodes_[node].begin, nodes_[node].end}; }

 private:
  struct Node {
    std::size_t parent = 0, place = 0;  ///< place: among its parent's children
    GradientFlow flow = GradientFlow::any;
    std::uint32_t begin = 0, end = 0;
    std::vector<std::size_t> children;
  };
  [[nodiscard]] bool passes_on(std::size_t node) const;
  [[nodiscard]] std::uint32_t used_since(std::size_t chain, std::size_t count) const;
  [[nodiscard]] std::uint32_t result_used_since(std::size_t node) const;
  [[nodiscard]] std::uint32_t result_used_until(std::size_t node) const;

  std::vector<Node> nodes_;
  std::size_t current_ = 0;
  std::uint32_t time_ = 0;
};

}  // namespace ronda
