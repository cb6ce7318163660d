#pragma once
#include <array>
#include <csignal>

namespace ronda {

/// Takes SIGTERM and SIGUSR1 for wishes that the training end in good order; for applications, since a library takes no
/// signals. One at a time. From the first such signal on, all further ones are ignored to the end of the process, so
/// that nothing disturbs the saving; without one, destroying this object gives the signals back.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  [[nodiscard]] bool received() const noexcept;
  /// As if one had come: another rank's did, and all are about to end.
  void ignore_from_now_on() noexcept;

 private:
  static constexpr std::array<int, 2> signals{SIGTERM, SIGUSR1};
  std::array<struct sigaction, signals.size()> before_{};
};

}  // namespace ronda
