#pragma once
#include <csignal>
#include <map>

namespace ronda {

/// Takes SIGTERM, SIGUSR1, SIGINT and SIGHUP for wishes that the training end in good order; for applications, since a
/// library takes no signals. One at a time, made before anything that takes long. From the first such signal on, all
/// further ones are ignored to the end of the process, so that nothing disturbs the saving; but a second SIGINT, which
/// is a person at a keyboard, ends the process at once. Without a signal, destroying this object gives them back.
///
/// A training that is not saved takes SIGUSR1 alone, which schedulers send ahead of the end: it cannot end in good
/// order, and should not end by a warning. SIGTERM, SIGINT and SIGHUP end it, as any process.
///
/// Signals that were ignored before this object was made stay ignored.
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
  void take(int signal, const struct sigaction& action);

  std::map<int, struct sigaction> before_;  ///< by signal
};

}  // namespace ronda
