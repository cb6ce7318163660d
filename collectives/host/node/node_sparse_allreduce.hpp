#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/node/copies.hpp>
#include <ronda/core/state.hpp>

namespace ronda {

/// Sums a table of which each rank has touched some rows over the ranks of one node, in memory that all of them see:
/// nothing is sent, and no other row is read.
///
/// When all have come, each rank reads all lists of touched rows, and so knows the rows that any has touched, in the
/// same order as all. Of these it sums its own over all copies, and writes the sums to all copies; when all have done
/// so, everybody has everything. A page of a table, about, is one rank's, so that each maps one table's worth of the
/// others' memory, however many they are.
///
/// Cost: two barriers; a rank reads and writes n times 1/n of the touched rows.
/// Order of summation: by rank.
class NodeSparseAllreduce final : public Algorithm {
 public:
  /// @param tables   float32, rows of `width` elements
  /// @param lists    the memory of each rank's touched rows
  /// @param touched  this rank's; outlives this object
  NodeSparseAllreduce(NodeCopies tables, NodeCopies lists, std::size_t width, TouchedRows& touched);

  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& look) override { look(barrier_); }
  [[nodiscard]] std::size_t memory() const noexcept override { return list_.size() * sizeof(std::int32_t); }
  /// What would be sent, where owners had no memory in common with others.
  [[nodiscard]] std::uint64_t sent_bytes() const noexcept override { return sent_; }

 private:
  void read_lists();
  void sum_own_rows();
  [[nodiscard]] bool owns(std::int32_t row) const noexcept;

  NodeCopies tables_, lists_;
  std::size_t width_, rows_a_page_;
  TouchedRows& touched_;
  NodeBarrier barrier_;
  std::vector<std::int32_t> list_;
  TouchedRows all_;  ///< in `list_`: rows that any rank has touched
  std::uint64_t sent_ = 0;
};

}  // namespace ronda
