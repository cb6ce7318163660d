#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/host/algorithms/message_times.hpp>
#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/node/copies.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/host/transport/transport.hpp>
#include <ronda/collectives/host/wire_format.hpp>

namespace ronda {

/// An allreduce as far as the choice of its algorithm depends on it. The same on all ranks.
struct AllreduceTask {
  AllreduceAlgorithm wanted = AllreduceAlgorithm::automatic;
  std::size_t bytes = 0;
  bool node_shared = false;                     ///< the tensor lies, on every rank, in memory that its node shares
  Compression compression = Compression::none;  ///< that the algorithm can do for these numbers: possible_compression
};

/// What an algorithm is made from on one rank.
struct AllreduceParts {
  Reduction reduction;
  Elements elements;
  Wire wire;
  NodeCopies copies;  ///< for algorithms in node memory
  int slices = 1;     ///< ranks of the node that has fewest
  // Each call takes a channel on all ranks, so all ranks make the same calls.
  std::function<std::unique_ptr<Transport>()> across_all;    ///< between all ranks
  std::function<std::unique_ptr<Transport>()> across_nodes;  ///< see Links::across_nodes
  std::function<std::unique_ptr<Algorithm>()> by_fabric;     ///< the fabric's own allreduce
};

/// What an algorithm reduces by.
enum class AllreduceMeans : std::uint8_t {
  messages,     ///< messages of Ronda, between all ranks
  node_memory,  ///< memory that the ranks of a node share, with barriers; between nodes messages
  mpi           ///< the allreduce of MPI
};

/// An allreduce algorithm of the host's memory: all that names, choice, cost model, planner, benchmark and tests know
/// of it. Each file in `allreduce/` defines one, NAME_row for the file NAME.cpp, at its end; the build makes the table.
/// To write one, copy doubling.cpp.
struct AllreduceRow {
  AllreduceAlgorithm algorithm;  ///< named in the enumeration, or the next free number: see first_other
  std::string_view name, help;
  AllreduceMeans means = AllreduceMeans::messages;
  /// The most roundings of one number with int8, int4 or 2bit. Null: the algorithm cannot compress.
  int (*roundings)(int ranks) = nullptr;
  /// Up to this size it is so short that reading the clock twice would change the time: only one run in 16 is timed.
  std::size_t brief_bytes = 0;

  /// Empty: the algorithm can do this task on these hosts. Otherwise an error text with the remedy. Null: it always
  /// can.
  std::string (*refusal)(const AllreduceTask&, const Topology&) = nullptr;
  /// Whether `auto` may choose it for a task that it does not refuse. Needs a `cost`; false for tasks with compression
  /// if the algorithm cannot compress. Null: never.
  bool (*suits)(const AllreduceTask&, const Topology&) = nullptr;
  /// The algorithm that replaces this one on this topology. Null: itself, always.
  AllreduceAlgorithm (*becomes)(const Topology&) = nullptr;
  /// Seconds. No value: a cost that the formula needs was not measured. Null: there is no formula.
  std::optional<double> (*cost)(const MessageTimes&, double bytes, const MessageTimes::Packed&) = nullptr;
  std::unique_ptr<Algorithm> (*make)(const AllreduceParts&) = nullptr;

  [[nodiscard]] bool in_node_memory() const noexcept { return means == AllreduceMeans::node_memory; }
  [[nodiscard]] bool compresses() const noexcept { return roundings != nullptr; }
};

/// All rows, by number.
[[nodiscard]] std::span<const AllreduceRow* const> allreduce_rows() noexcept;
/// Null for algorithms of other memory, and for `automatic`.
[[nodiscard]] const AllreduceRow* find_row(AllreduceAlgorithm algorithm) noexcept;

// For refusals.

[[nodiscard]] std::string refuse_more_than_one_message(const AllreduceTask& task, const Topology& topology);
[[nodiscard]] std::string refuse_private_memory(const AllreduceTask& task, const Topology& topology);
/// Whether nodes are of no use to `auto`: there is one, or each has one rank.
[[nodiscard]] inline bool alike(const Topology& topology) {
  return topology.nodes == 1 || topology.most_ranks_on_a_node == 1;
}
/// For `suits`.
[[nodiscard]] inline bool always(const AllreduceTask& /*task*/, const Topology& /*topology*/) { return true; }

}  // namespace ronda
