#include <ronda/runtime/strategy/pipeline/gathered_costs.hpp>

#include <array>
#include <span>

namespace ronda {

std::vector<StageCosts> gather_costs(Communicator& all, const StageCosts& mine, const StagedModel& model,
                                     std::size_t micro_batches) {
  const auto ranks = static_cast<std::size_t>(all.size());
  std::array numbers{mine.computing_seconds, mine.waiting_seconds, static_cast<double>(mine.memory)};
  std::vector<double> gathered(numbers.size() * ranks);
  all.allgather(Tensor(std::span(numbers)), Tensor(std::span(gathered)));
  std::vector<StageCosts> stages(model.stages());
  const double pipelines = static_cast<double>(ranks) / static_cast<double>(stages.size());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    StageCosts& stage = stages[rank % stages.size()];
    const double* of_rank = &gathered[numbers.size() * rank];
    stage.computing_seconds += of_rank[0] / pipelines;
    stage.waiting_seconds += of_rank[1] / pipelines;
    stage.memory = static_cast<std::uint64_t>(of_rank[2]);
  }
  const std::vector<std::string> begins = model.begins();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    stages[i].begins = begins[i];
    for (const ParameterRequest& request : model.plan(i).requests)
      stages[i].parameters += static_cast<std::uint64_t>(request.desc.count());
    stages[i].predicted_bubble = predicted_bubble(stages.size(), micro_batches);
  }
  return stages;
}

}  // namespace ronda
