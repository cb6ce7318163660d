#include <ronda/core/text.hpp>
#include <ronda/runtime/strategy/replica/cost_table.hpp>

namespace ronda {
namespace {

std::string line(const std::string& name, const std::string& output, const OperationCosts& costs) {
  return formatted("%-16s %-22s %10zu %10.2f %10s %10.0f %10.0f  ", name.c_str(), output.c_str(), costs.parameters,
                   costs.flops / 1e6, human_bytes(costs.kept_bytes).c_str(), costs.forward * 1e6,
                   costs.backward * 1e6) +
         costs.picks;
}

}  // namespace

std::vector<std::string> cost_table(std::span<const OperationCosts> costs) {
  std::vector<std::string> lines{
      "operation        output                 parameters      MFLOP       kept forward us backw. us  picked"};
  OperationCosts total;
  for (const OperationCosts& one : costs) {
    lines.push_back(line(one.name, one.output.text(), one));
    total.parameters += one.parameters;
    total.flops += one.flops;
    total.kept_bytes += one.kept_bytes;
    total.forward += one.forward;
    total.backward += one.backward;
  }
  lines.push_back(line("all", "", total));
  return lines;
}

}  // namespace ronda
