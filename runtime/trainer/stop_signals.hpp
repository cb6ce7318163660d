#pragma once
#include <csignal>
#include <map>

namespace ronda {

/// Handles SIGTERM, SIGUSR1 and SIGINT as requests to end the training in good order; for applications, since a library
/// handles no signals. One object at a time, constructed before long work. After the first such signal, later ones are
/// ignored to the end of the process, so that they do not disturb the saving; except that a second SIGINT, from a
/// keyboard, ends the process at once. Without a signal, the destructor restores the former handlers.
///
/// A training without checkpoints cannot end in good order, so it handles only SIGUSR1, which schedulers send as a
/// warning ahead of the end: the signal should not end it. SIGTERM and SIGINT end it, as any process.
class StopSignals {
 public:
  enum class Taken : unsigned char { all, warnings };
  explicit StopSignals(Taken taken = Taken::all);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  [[nodiscard]] bool received() const noexcept;
  /// As if a signal had arrived: another rank received one, and all are about to end.
  void ignore_from_now_on() const noexcept;

 private:
  std::map<int, struct sigaction> before_;  ///< by signal
};

}  // namespace ronda
