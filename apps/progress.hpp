#pragma once
#include <chrono>
#include <cstddef>
#include <string>

namespace ronda::apps {

/// Says on standard error how far a long work has come: nothing in the first second, then once a second on a terminal,
/// in one line, and every ten seconds elsewhere.
class Progress {
 public:
  /// @param tool  `ronda_data`
  /// @param unit  `pictures`
  Progress(std::string tool, std::string unit);
  ~Progress();  ///< leaves the line clean
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void at(std::size_t done, std::size_t all);
  /// Before something else is printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string tool_, unit_;
  int width_;  ///< of the terminal; 0: there is none
  Clock::time_point next_;
  bool shown_ = false;
};

}  // namespace ronda::apps
