#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <ronda/layers/graph_split.hpp>

namespace ronda {

/// Rough rates of computing and communication, to estimate whether splitting an operation saves time.
struct SplitRates {
  double flops = 40e9;     ///< per second
  double bytes = 2e9;      ///< per second, in sums and gathers
  double message = 20e-6;  ///< latency of a sum or gather, in seconds
};

/// Operations that are split together, with the computing time saved and the communication time added per rank and
/// step, in seconds.
struct SplitCandidate {
  std::vector<SplitChoice> choices;
  double saved = 0, added = 0;
  [[nodiscard]] bool pays() const noexcept { return saved > added; }
  [[nodiscard]] std::string text() const;
};

/// All operations that can be split, in the order of the graph: pairs of dense layers or convolutions, by columns and
/// by rows, with only featurewise operations between them; attentions, by heads; and single dense layers and
/// convolutions, by columns with a gather. Assumes that backward costs twice forward. Operations too narrow for `parts`
/// parts are left out.
[[nodiscard]] std::vector<SplitCandidate> split_candidates(const Graph& graph, std::size_t parts,
                                                           const SplitRates& rates = {});

/// The choices of all candidates that save more time than they add.
[[nodiscard]] std::vector<SplitChoice> choices_that_pay(std::span<const SplitCandidate> candidates);

}  // namespace ronda
