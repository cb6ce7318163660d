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
  Compression compression = Compression::none;  ///< which can be, see possible_compression
};

/// What an algorithm is made of on one rank.
struct AllreduceParts {
  Reduction reduction;
  Elements elements;
  Wire wire;
  NodeCopies copies;  ///< for algorithms in node memory
  int slices = 1;     ///< ranks of the node that has fewest
  // Each call takes a tag on all ranks, so all ranks make the same calls.
  std::function<std::unique_ptr<Transport>()> across_all;    ///< between all ranks
  std::function<std::unique_ptr<Transport>()> across_nodes;  ///< see Links::across_nodes
  std::function<std::unique_ptr<Algorithm>()> plain_mpi;     ///< MPI's own allreduce
};

/// An allreduce algorithm of the host's memory: all that names, choice, cost model, planner, benchmark and tests know
/// of it. Each file in `allreduce/` defines one, NAME_row for the file NAME.cpp, at its end; the build makes the table.
struct AllreduceRow {
  AllreduceAlgorithm algorithm;  ///< a number of its own
  std::string_view name, help;
  bool in_node_memory = false;  ///< reduces in memory that the ranks of a node share, with barriers
  /// How often a number is rounded on its way, at most, where int8 is sent. Null: numbers are sent as they are.
  int (*roundings)(int ranks) = nullptr;
  std::size_t brief_bytes = 0;  ///< up to here it is over so soon that two looks at the clock would show

  /// Why this task cannot be done so here, in a sentence with the remedy; empty where it can. Null: it always can.
  std::string (*refusal)(const AllreduceTask&, const Topology&) = nullptr;
  /// Whether `auto` may take it, where it is not refused. Null: never.
  bool (*suits)(const AllreduceTask&, const Topology&) = nullptr;
  /// Another algorithm that it is here. Null: it is itself.
  AllreduceAlgorithm (*becomes)(const Topology&) = nullptr;
  /// Seconds; nothing where costs that it takes are not known. Null: never known.
  std::optional<double> (*cost)(const MessageTimes&, double bytes, const MessageTimes::Packed&) = nullptr;
  std::unique_ptr<Algorithm> (*make)(const AllreduceParts&) = nullptr;
};

/// All there are, in the order in which they are listed.
[[nodiscard]] std::span<const AllreduceRow* const> allreduce_rows() noexcept;
/// Null for algorithms of other memory, and for `automatic`.
[[nodiscard]] const AllreduceRow* find_row(AllreduceAlgorithm algorithm) noexcept;

// For refusals.

/// The longest that algorithms take which send all of the data at once.
inline constexpr std::size_t one_message = std::size_t{1} << 30;
[[nodiscard]] std::string refuse_more_than_one_message(const AllreduceTask& task, const Topology& topology);
[[nodiscard]] std::string refuse_private_memory(const AllreduceTask& task, const Topology& topology);
/// Whether `auto` gains nothing by telling nodes from ranks.
[[nodiscard]] inline bool alike(const Topology& topology) {
  return topology.nodes == 1 || topology.most_ranks_on_a_node == 1;
}
/// For `suits`.
[[nodiscard]] inline bool always(const AllreduceTask& /*task*/, const Topology& /*topology*/) { return true; }

}  // namespace ronda
