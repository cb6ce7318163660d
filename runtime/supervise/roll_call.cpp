#include <ronda/core/clock.hpp>
#include <ronda/core/process.hpp>
#include <ronda/runtime/supervise/roll_call.hpp>

#include <algorithm>

namespace ronda {

bool is_this_machine(const std::string& name) { return name == "localhost" || name == host_name(); }

RollCall::RollCall(std::span<const std::string> agent, std::span<const Host> hosts, double patience)
    : end_(steady_seconds() + patience) {
  for (const Host& host : hosts) {
    Call call{host, {}};
    std::vector<std::string> command(agent.begin(), agent.end());
    command.insert(command.end(), {host.name, "true"});
    if (!is_this_machine(host.name)) call.child.emplace_back(command, ChildOutput::dropped);
    calls_.push_back(std::move(call));
  }
}

bool RollCall::over() {
  return steady_seconds() >= end_ || std::all_of(calls_.begin(), calls_.end(), [](Call& call) {
           return call.child.empty() || call.child.front().status().has_value();
         });
}

std::vector<Host> RollCall::present() {
  std::vector<Host> present;
  for (Call& call : calls_)
    if (call.child.empty() || call.child.front().status() == 0) present.push_back(call.host);
  return present;
}

}  // namespace ronda
