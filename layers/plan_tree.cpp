#include <ronda/layers/plan_tree.hpp>

#include <algorithm>

namespace ronda {

void PlanTree::enter(GradientFlow flow) {
  const std::size_t node = nodes_.size();
  nodes_.push_back({.parent = current_,
                    .place = nodes_[current_].children.size(),
                    .flow = flow,
                    .begin = ++time_,
                    .end = 0,
                    .children = {}});
  nodes_[current_].children.push_back(node);
  current_ = node;
}

void PlanTree::leave(GradientFlow flow) {
  nodes_[current_].flow = flow;
  nodes_[current_].end = ++time_;
  current_ = nodes_[current_].parent;
}

bool PlanTree::in_chain() const noexcept {
  const std::size_t parent = nodes_[current_].parent;
  return parent != 0 && nodes_[parent].flow == GradientFlow::chain;
}

Stretch PlanTree::gradient_of(std::size_t node) const { return {result_used_since(node), result_used_until(node)}; }

/// Whether a layer's backward may return memory that it was given.
bool PlanTree::passes_on(std::size_t node) const {
  const Node& layer = nodes_[node];
  if (layer.flow != GradientFlow::chain) return layer.flow == GradientFlow::any;
  return std::ranges::all_of(layer.children, [this](std::size_t child) { return passes_on(child); });
}

/// Of what the first `count` children of a chain are given, from the last of them to the first.
std::uint32_t PlanTree::used_since(std::size_t chain, std::size_t count) const {
  while (count-- > 0) {
    const std::size_t child = nodes_[chain].children[count];
    if (passes_on(child)) continue;
    if (nodes_[child].flow == GradientFlow::chain) return used_since(child, nodes_[child].children.size());
    return nodes_[child].begin;
  }
  return result_used_since(chain);
}

std::uint32_t PlanTree::result_used_since(std::size_t node) const {
  if (node == 0) return 0;
  const std::size_t parent = nodes_[node].parent;
  // One that is no chain may call its children in any order, and return what they returned.
  if (nodes_[parent].flow != GradientFlow::chain) return result_used_since(parent);
  return used_since(parent, nodes_[node].place);
}

/// Later in the planning, and so earlier in backward, there is a use only within a layer that is no chain.
std::uint32_t PlanTree::result_used_until(std::size_t node) const {
  std::uint32_t end = nodes_[node].end;
  for (; nodes_[node].parent != 0; node = nodes_[node].parent) {
    const Node& parent = nodes_[nodes_[node].parent];
    if (parent.flow != GradientFlow::chain) {
      end = parent.end;
      continue;
    }
    const auto before = parent.children.begin() + static_cast<std::ptrdiff_t>(nodes_[node].place);
    if (!std::all_of(parent.children.begin(), before, [this](std::size_t child) { return passes_on(child); })) break;
  }
  return end;
}

}  // namespace ronda
