#include <ronda/collectives/tuning/choice.hpp>
#include <ronda/collectives/tuning/compression_choice.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <limits>

namespace ronda {
namespace {

/// Up to here a message's bytes cost nothing beside the message.
constexpr std::size_t few_bytes = 256;

/// Less is a few packets: compression saves nothing that can be measured.
constexpr std::size_t worth_packing = std::size_t{16} << 10;

std::string refusal_of(const AllreduceRow& row, const AllreduceTask& task, const Topology& topology) {
  return row.refusal == nullptr ? std::string() : row.refusal(task, topology);
}

/// What `algorithm` may send numbers as.
std::vector<Compression> compressions(const AllreduceTask& task, AllreduceAlgorithm algorithm,
                                      const Topology& topology) {
  if (task.compression == Compression::none || sends_nothing(algorithm, topology)) return {Compression::none};
  if (task.compression != Compression::automatic) return {task.compression};
  if (topology.nodes == 1 || task.bytes < worth_packing) return {Compression::none};  // a network's bytes are dear
  return {Compression::none, Compression::bf16};
}

/// The algorithm in each way, with the model's times.
void add_choices(std::vector<AllreduceChoice>& choices, const AllreduceTask& task, AllreduceAlgorithm algorithm,
                 const Topology& topology, const CostModel* model) {
  for (const Compression compression : compressions(task, algorithm, topology))
    choices.push_back(
        {algorithm, compression, model == nullptr ? std::nullopt : model->seconds(algorithm, task.bytes, compression)});
}

/// Without a model the first: uncompressed, unless that was asked for.
AllreduceChoice best_of(const std::vector<AllreduceChoice>& choices, Compression wanted) {
  constexpr double worth_rounding = 0.9;
  const auto weight = [&](const AllreduceChoice& choice) {
    const bool by_itself = wanted == Compression::automatic && choice.compression != Compression::none;
    return choice.seconds.value_or(std::numeric_limits<double>::infinity()) / (by_itself ? worth_rounding : 1);
  };
  return std::ranges::min(choices, {}, weight);
}

AllreduceChoice with_best_compression(const AllreduceTask& task, AllreduceAlgorithm algorithm, const Topology& topology,
                                      const CostModel* model) {
  std::vector<AllreduceChoice> choices;
  add_choices(choices, task, algorithm, topology, model);
  return best_of(choices, task.compression);
}

/// Without a model: the one that is never bad for much data.
AllreduceChoice fastest(const AllreduceTask& task, const Topology& topology, const CostModel* model) {
  if (task.node_shared && topology.nodes == 1)
    return with_best_compression(task, AllreduceAlgorithm::node, topology, model);
  if (!depends_on_costs(task, topology))
    return with_best_compression(task, AllreduceAlgorithm::doubling, topology, model);
  if (model == nullptr) return with_best_compression(task, AllreduceAlgorithm::ring, topology, model);
  return best_of(possible_choices(task, topology, *model), task.compression);
}

}  // namespace

bool depends_on_costs(const AllreduceTask& task, const Topology& topology) {
  if (task.wanted != AllreduceAlgorithm::automatic)
    return task.compression == Compression::automatic && topology.nodes > 1 && task.bytes >= worth_packing;
  if (task.node_shared && topology.nodes == 1) return false;  // also where ranks share cores
  return task.bytes > few_bytes || !alike(topology);
}

std::vector<AllreduceChoice> possible_choices(const AllreduceTask& task, const Topology& topology,
                                              const CostModel& model) {
  std::vector<AllreduceChoice> choices;
  if (task.wanted != AllreduceAlgorithm::automatic) {
    add_choices(choices, task, task.wanted, topology, &model);
    return choices;
  }
  for (const AllreduceRow* row : allreduce_rows())  // of equals the first
    if (row->suits != nullptr && row->suits(task, topology) && refusal_of(*row, task, topology).empty())
      add_choices(choices, task, row->algorithm, topology, &model);
  return choices;
}

std::string refusal_of(const AllreduceTask& task, const Topology& topology) {
  const AllreduceRow* const row = find_row(task.wanted);
  return row == nullptr ? std::string() : refusal_of(*row, task, topology);
}

AllreduceChoice choose_allreduce(const AllreduceTask& task, const Topology& topology, const CostModel* model) {
  if (task.wanted == AllreduceAlgorithm::automatic) return fastest(task, topology, model);
  require_fitting(task.wanted, DeviceKind::cpu);
  if (const std::string why = refusal_of(task, topology); !why.empty()) throw InputError(why);
  const AllreduceRow& row = *find_row(task.wanted);
  const AllreduceAlgorithm here = row.becomes == nullptr ? task.wanted : row.becomes(topology);
  return with_best_compression(task, here, topology, model);
}

}  // namespace ronda
