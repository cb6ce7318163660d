#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <ronda/layers/graph_split.hpp>

namespace ronda {

/// What computing and telling cost a rank, roughly: enough to see whether splitting an operation pays.
struct SplitRates {
  double flops = 40e9;     ///< a second
  double bytes = 2e9;      ///< a second, that are added up or gathered
  double message = 20e-6;  ///< seconds of each sum, however short
};

/// Operations that are split together, and what that saves and costs a rank in a step, in seconds.
struct SplitCandidate {
  std::vector<SplitChoice> choices;
  double saved = 0, added = 0;
  [[nodiscard]] bool pays() const noexcept { return saved > added; }
  [[nodiscard]] std::string text() const;
};

/// What can be split, in the order of the graph: dense layers and convolutions in pairs, by columns and by rows, with
/// what works feature by feature between them; attentions by heads; and what is left by columns, gathered behind.
/// Backward costs twice forward. What is too narrow for so many parts is left out.
[[nodiscard]] std::vector<SplitCandidate> split_candidates(const Graph& graph, std::size_t parts,
                                                           const SplitRates& rates = {});

/// Of these, those that pay.
[[nodiscard]] std::vector<SplitChoice> choices_that_pay(std::span<const SplitCandidate> candidates);

}  // namespace ronda
