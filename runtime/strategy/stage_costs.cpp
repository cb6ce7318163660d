#include <ronda/core/counted.hpp>
#include <ronda/runtime/strategy/stage_costs.hpp>

#include <cstdio>

namespace ronda {

std::vector<std::string> stage_table(const std::vector<StageCosts>& stages) {
  std::vector<std::string> lines;
  if (stages.empty()) return lines;
  lines.push_back("stage  from             parameters     memory  computing    waiting  bubble  (S-1)/(M+S-1)");
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StageCosts& stage = stages[i];
    char text[256];
    std::snprintf(text, sizeof text, "%5zu  %-16s %10llu %10s %9.2fs %9.2fs %6.1f%% %14.1f%%", i, stage.begins.c_str(),
                  static_cast<unsigned long long>(stage.parameters), human_bytes(stage.memory).c_str(),
                  stage.computing_seconds, stage.waiting_seconds, 100 * stage.bubble(), 100 * stage.predicted_bubble);
    lines.emplace_back(text);
  }
  return lines;
}

}  // namespace ronda
