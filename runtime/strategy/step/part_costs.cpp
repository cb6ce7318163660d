#include <ronda/core/text.hpp>
#include <ronda/runtime/strategy/step/part_costs.hpp>

#include <algorithm>

namespace ronda {

/// Of the waits of 1F1B, S-1 times a forward and the first half of a backward, second halves fill some.
double predicted_bubble(std::size_t stages, std::size_t micro_batches) noexcept {
  const std::size_t filled = std::min(stages, micro_batches) - 1, waits = 2 * (stages - 1) - filled;
  return static_cast<double>(waits) / static_cast<double>(3 * micro_batches + waits);
}

std::vector<std::string> stage_table(const std::vector<StageCosts>& stages) {
  std::vector<std::string> lines;
  if (stages.empty()) return lines;
  lines.push_back("stage  from             parameters     memory  computing    waiting  bubble  predicted");
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StageCosts& stage = stages[i];
    lines.push_back(formatted("%5zu  %-16s %10llu %10s %9.2fs %9.2fs %6.1f%% %9.1f%%", i, stage.begins.c_str(),
                              static_cast<unsigned long long>(stage.parameters), human_bytes(stage.memory).c_str(),
                              stage.computing_seconds, stage.waiting_seconds, 100 * stage.bubble(),
                              100 * stage.predicted_bubble));
  }
  return lines;
}

}  // namespace ronda
