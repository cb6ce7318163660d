#pragma once
#include <array>
#include <memory>
#include <vector>

#include <ronda/collectives/host/algorithms/link_probe.hpp>
#include <ronda/collectives/link_costs.hpp>
#include <ronda/collectives/members/links.hpp>
#include <ronda/collectives/members/node_memory.hpp>

namespace ronda {

/// Measures what messages cost between the ranks of a group. All ranks do so at once, size by size, and agree on each
/// before they go on to the next. Every function is collective.
class Calibration {
 public:
  /// @param members, agreement, links, memory  outlive this object
  Calibration(Members& members, Agreement& agreement, Links& links, NodeMemory& memory)
      : members_(members), agreement_(agreement), links_(links), memory_(memory) {}

  [[nodiscard]] LinkCosts measure();
  /// The groups of repetitions, from the one that was disturbed least, of the slowest ranks.
  /// @param ring  of ranks that pass messages to each other: any number that only they have
  [[nodiscard]] LinkProbe::Seconds agreed(int ring, const LinkProbe::Seconds& mine);

 private:
  [[nodiscard]] MessageCosts measure_messages(const std::vector<int>& members);
  [[nodiscard]] CostCurve measure_window();
  [[nodiscard]] double measure_combining();
  [[nodiscard]] std::array<double, 3> measure_packing();
  [[nodiscard]] double slowest(double mine);
  [[nodiscard]] double now() const { return members_.engine()->fabric().seconds(); }  ///< not collective

  Members& members_;
  Agreement& agreement_;
  Links& links_;
  NodeMemory& memory_;
};

}  // namespace ronda
