// Runs the named programs, or all.
#include <iostream>
#include <set>
#include <string>
#include <utility>

#include "check.hpp"

namespace compatibility {

void collectives(ronda::World& world);
void key_value(ronda::World& world);
void own_dataset(ronda::World& world);
void own_hook(ronda::World& world);
void own_layer(ronda::World& world);
void own_loop(ronda::World& world);
void own_loss(ronda::World& world);
void own_metric(ronda::World& world);
void predictor(ronda::World& world);
void trainer(ronda::World& world);

}  // namespace compatibility

int main(int argc, char** argv) {
  using namespace compatibility;
  const std::pair<std::string, void (*)(ronda::World&)> programs[] = {
      {"collectives", collectives}, {"key_value", key_value}, {"own_dataset", own_dataset}, {"own_hook", own_hook},
      {"own_layer", own_layer},     {"own_loop", own_loop},   {"own_loss", own_loss},       {"own_metric", own_metric},
      {"predictor", predictor},     {"trainer", trainer}};
  const std::set<std::string> wanted(argv + 1, argv + argc);
  return ronda::launch(argc, argv, [&](ronda::World& world) {
    for (const auto& [name, program] : programs) {
      if (!wanted.empty() && !wanted.contains(name)) continue;
      program(world);
      if (world.rank() == 0) std::cout << name << ": as it was\n";
    }
    return 0;
  });
}
