#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/layers/split_choice.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>

namespace ronda {
namespace {

bool has_weight(const GraphNode& node) {
  return std::holds_alternative<DenseSpec>(node.operation) || std::holds_alternative<ConvolutionSpec>(node.operation);
}

bool goes_on_by_features(const GraphNode& node) {
  return std::holds_alternative<ElementwiseSpec>(node.operation) || std::holds_alternative<PoolSpec>(node.operation) ||
         std::holds_alternative<FlattenSpec>(node.operation);
}

class Candidates {
 public:
  Candidates(const Graph& graph, std::size_t parts, const SplitRates& rates)
      : graph_(graph), parts_(parts), rates_(rates) {}

  std::vector<SplitCandidate> run() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const GraphNode& node = graph_.nodes[i];
      if (done_.contains(node.name)) continue;
      if (std::holds_alternative<AttentionSpec>(node.operation)) continue;
      if (const GraphNode* attention = attention_behind(node)) {
        try_split({{node.name, SplitBy::heads}}, node, *last_of(attention->name));
      } else if (has_weight(node)) {
        const GraphNode* reader = next_weight(i);
        if (reader == nullptr ||
            !try_split({{node.name, SplitBy::columns}, {reader->name, SplitBy::rows}}, node, *reader))
          try_split({{node.name, SplitBy::columns}}, node, node);
      }
    }
    return std::move(all_);
  }

 private:
  /// @param first, last  of the operations: the sum of backward is of the first's input, that of forward, or the
  /// gather,
  ///                     of the last's output
  bool try_split(std::vector<SplitChoice> choices, const GraphNode& first, const GraphNode& last) {
    try {
      static_cast<void>(split(graph_, choices, parts_));
    } catch (const InputError&) {
      return false;  // too narrow, or of no kind that can be
    }
    SplitCandidate candidate{.choices = std::move(choices)};
    for (const SplitChoice& choice : candidate.choices) {
      done_.insert(choice.name);
      for (const GraphNode& node : graph_.nodes)
        if (node.name == choice.name) candidate.saved += 3 * flops(node) / rates_.flops;
    }
    candidate.saved *= 1 - 1.0 / static_cast<double>(parts_);
    candidate.added = told(last.output) + (needs_gradient(first.inputs.front()) ? told(first.inputs.front()) : 0);
    all_.push_back(std::move(candidate));
    return true;
  }

  [[nodiscard]] double flops(const GraphNode& node) const {
    std::vector<Shape> shapes;
    for (const std::size_t input : node.inputs) shapes.push_back(graph_.values[input].shape);
    return flops_of(node.operation, shapes);
  }
  /// Seconds in which a value is added up or gathered.
  [[nodiscard]] double told(std::size_t value) const {
    return rates_.message + static_cast<double>(graph_.values[value].shape.count()) * sizeof(float) / rates_.bytes;
  }
  /// Whether a parameter lies before it.
  [[nodiscard]] bool needs_gradient(std::size_t value) const {
    return std::ranges::none_of(graph_.inputs, [&](const GraphInput& input) { return input.value == value; });
  }

  [[nodiscard]] const GraphNode* only_reader(std::size_t value) const {
    if (graph_.readers(value) != 1) return nullptr;
    const auto reader = std::ranges::find_if(
        graph_.nodes, [&](const GraphNode& node) { return std::ranges::count(node.inputs, value) > 0; });
    return reader != graph_.nodes.end() ? &*reader : nullptr;
  }
  [[nodiscard]] const GraphNode* attention_behind(const GraphNode& node) const {
    const GraphNode* reader = only_reader(node.output);
    const bool attends = reader != nullptr && std::holds_alternative<AttentionSpec>(reader->operation);
    return attends && reader->name == node.name ? reader : nullptr;
  }
  [[nodiscard]] const GraphNode* last_of(const std::string& name) const {
    const auto node = std::ranges::find(graph_.nodes.rbegin(), graph_.nodes.rend(), name, &GraphNode::name);
    return &*node;
  }
  /// The next operation with a weight, where nothing but functions of features lies between.
  [[nodiscard]] const GraphNode* next_weight(std::size_t i) const {
    for (const GraphNode* node = only_reader(graph_.nodes[i].output); node != nullptr;
         node = only_reader(node->output)) {
      if (has_weight(*node)) return attention_behind(*node) == nullptr && !done_.contains(node->name) ? node : nullptr;
      if (!goes_on_by_features(*node)) return nullptr;
    }
    return nullptr;
  }

  const Graph& graph_;
  std::size_t parts_;
  SplitRates rates_;
  std::set<std::string> done_;
  std::vector<SplitCandidate> all_;
};

}  // namespace

std::string SplitCandidate::text() const {
  return text_of(choices) +
         formatted(": saves %.0f us of computing a step, adds %.0f us of telling", 1e6 * saved, 1e6 * added);
}

std::vector<SplitCandidate> split_candidates(const Graph& graph, std::size_t parts, const SplitRates& rates) {
  return Candidates(graph, parts, rates).run();
}

std::vector<SplitChoice> choices_that_pay(std::span<const SplitCandidate> candidates) {
  std::vector<SplitChoice> choices;
  for (const SplitCandidate& candidate : candidates)
    if (candidate.pays()) choices.insert(choices.end(), candidate.choices.begin(), candidate.choices.end());
  return choices;
}

}  // namespace ronda
