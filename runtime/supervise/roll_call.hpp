#pragma once
#include <span>
#include <string>
#include <vector>

#include <ronda/runtime/supervise/child_process.hpp>
#include <ronda/runtime/supervise/hosts.hpp>

namespace ronda {

/// Whether a host's name is this machine's own, or localhost.
[[nodiscard]] bool is_this_machine(const std::string& name);

/// Asks hosts, all at once, whether they still answer: each is to run `true`. This machine always answers.
class RollCall {
 public:
  /// @param agent     reaches a host: AGENT HOST COMMAND, as ssh does
  /// @param patience  seconds that an answer may take
  RollCall(std::span<const std::string> agent, std::span<const Host> hosts, double patience);

  /// True when all have answered or had their time. Does not wait.
  [[nodiscard]] bool over();
  /// Those that have answered, in their order.
  [[nodiscard]] std::vector<Host> present();

 private:
  struct Call {
    Host host;
    std::vector<ChildProcess> child;  ///< none for this machine
  };
  std::vector<Call> calls_;
  double end_;
};

}  // namespace ronda
