#pragma once
#include <span>
#include <string>
#include <vector>

#include <ronda/runtime/supervise/child_process.hpp>
#include <ronda/runtime/supervise/hosts.hpp>

namespace ronda {

/// Whether `name` is the name of this machine, or localhost.
[[nodiscard]] bool is_this_machine(const std::string& name);

/// Checks which hosts still respond, by running `true` on all of them at once. This machine always counts as
/// responding.
class RollCall {
 public:
  /// @param agent     command that reaches a host: AGENT HOST COMMAND, such as ssh
  /// @param patience  timeout in seconds
  RollCall(std::span<const std::string> agent, std::span<const Host> hosts, double patience);

  /// Whether all hosts have responded, or the timeout is over. Does not wait.
  [[nodiscard]] bool over();
  /// The hosts that have responded, in the given order.
  [[nodiscard]] std::vector<Host> present();

 private:
  struct Call {
    Host host;
    std::vector<ChildProcess> child;  ///< empty for this machine
  };
  std::vector<Call> calls_;
  double end_;
};

}  // namespace ronda
