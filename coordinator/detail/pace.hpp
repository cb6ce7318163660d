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
  /// A cycle is over, or the first one is to come.
  /// @param has_work        whether this rank has something in flight
  /// @param gather_seconds  to wait for more after the first tensor of a cycle
  void rest(double now, bool has_work, double gather_seconds);
  /// Whether the next cycle begins now.
  [[nodiscard]] bool due(double now);
  /// When it begins, at the latest.
  [[nodiscard]] double at() const noexcept { return at_; }
  /// Whether it begins earlier if the bell rings.
  [[nodiscard]] bool listens() const noexcept { return listens_; }

 private:
  Bell& bell_;
  Progress progress_ = Progress::some;
  double backoff_ = 0;
  double at_ = 0, after_ring_ = 0;
  bool listens_ = false;
};

}  // namespace ronda
