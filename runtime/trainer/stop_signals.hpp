#pragma once
#include <array>
#include <csignal>

namespace ronda {

/// Takes SIGTERM, SIGUSR1 and SIGINT for wishes that the training end in good order; for applications, since a library
/// takes no signals. One at a time, made before anything that takes long. From the first such signal on, all further
/// ones are ignored to the end of the process, so that nothing disturbs the saving; but a second SIGINT, which is a
/// person at a keyboard, ends the process at once. Without a signal, destroying this object gives them back.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  [[nodiscard]] bool received() const noexcept;
  /// As if one had come: another rank's did, and all are about to end.
  void ignore_from_now_on() const noexcept;

 private:
  static constexpr std::array<int, 3> signals{SIGTERM, SIGUSR1, SIGINT};
  std::array<struct sigaction, signals.size()> before_{};
};

}  // namespace ronda
