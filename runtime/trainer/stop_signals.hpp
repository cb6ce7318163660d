#pragma once
#include <csignal>
#include <map>

namespace ronda {

/// Treats SIGTERM, SIGUSR1, SIGINT and SIGHUP as requests to end the training cleanly; for applications, since a
/// library should not handle signals. Only one object at a time; construct it before any long work. After the first
/// such signal, further ones are ignored until the process ends, so that saving is not interrupted; except that a
/// second SIGINT, from a user at the keyboard, ends the process at once. If no signal arrived, the destructor restores
/// the previous handlers.
///
/// A training that is not saved handles only SIGUSR1, which schedulers send before the end: it cannot end cleanly, and
/// a warning should not end it. SIGTERM, SIGINT and SIGHUP end it, like any process.
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
  /// Ignores signals as if one had arrived: another rank received one, and all are about to end.
  void ignore_from_now_on() const noexcept;

 private:
  void take(int signal, const struct sigaction& action);

  std::map<int, struct sigaction> before_;  ///< previous handlers, by signal
};

}  // namespace ronda
