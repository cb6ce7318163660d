#pragma once
#include <cstdint>

#include <ronda/coordinator/detail/submission.hpp>

namespace ronda {

/// When the next cycle begins. A rank that has something in flight goes into the cycle and waits there for the others.
class CyclePace {
 public:
  /// How a cycle went.
  enum class Progress : std::uint8_t { some, none_while_others_rest, none };

  explicit CyclePace(Bell& bell) : bell_(bell) {}

  void note(Progress progress) noexcept { progress_ = progress; }
  /// Waits until it is time.
  /// @param has_work        whether this rank has something in flight
  /// @param gather_seconds  to wait for more after the first tensor of a cycle
  void wait(bool has_work, double gather_seconds);

 private:
  Bell& bell_;
  Progress progress_ = Progress::some;
  double backoff_ = 0;
};

}  // namespace ronda
