#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/host/algorithms/allreduce_row.hpp>
#include <ronda/collectives/tuning/cost_model.hpp>

namespace ronda {

/// What it is done by.
struct AllreduceChoice {
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic;
  Compression compression = Compression::none;
  std::optional<double> seconds = {};  ///< as the model has it
};

/// Whether what is best for `task` depends on what messages cost: not in a node's shared memory, and not for a few
/// bytes between ranks that are all alike, for which fewest messages are best. Nor for an algorithm that was asked for,
/// unless its compression is to be chosen.
[[nodiscard]] bool depends_on_costs(const AllreduceTask& task, const Topology& topology);

/// What `task` could be done by, all of it, with the model's times. Compression that is `automatic` is bf16 or none,
/// and none on one node.
[[nodiscard]] std::vector<AllreduceChoice> possible_choices(const AllreduceTask& task, const Topology& topology,
                                                            const CostModel& model);

/// Why what `task` asks for cannot be here, in a sentence with the remedy; empty where it can.
[[nodiscard]] std::string refusal_of(const AllreduceTask& task, const Topology& topology);

/// What was asked for, or for `automatic` what the model expects to be fastest; compression that was not asked for has
/// to save a tenth of the time, because it costs accuracy. What is not sent is not compressed. Depends on nothing but
/// its arguments. Throws InputError where what was asked for cannot be.
/// @param model  null: nothing is known, and nothing has to be where the answer does not depend on it
[[nodiscard]] AllreduceChoice choose_allreduce(const AllreduceTask& task, const Topology& topology,
                                               const CostModel* model);

}  // namespace ronda
