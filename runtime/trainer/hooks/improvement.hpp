#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace ronda {

/// The least of the losses that it is told, and for how many epochs none was less.
class Improvement {
 public:
  /// True where `loss` is less than the least so far, by more than `least`. What is not a number never is.
  bool hear(double loss, double least) {
    ++since_;
    if (!(loss < best_ - least)) return false;
    best_ = loss;
    since_ = 0;
    return true;
  }
  [[nodiscard]] bool heard_any() const noexcept { return best_ < std::numeric_limits<double>::infinity(); }
  [[nodiscard]] double best() const noexcept { return best_; }
  [[nodiscard]] std::uint64_t since() const noexcept { return since_; }
  void start_waiting_anew() noexcept { since_ = 0; }

  /// For a checkpoint: CheckpointManifest::hooks. Of one that has heard nothing there is nothing to keep.
  [[nodiscard]] std::vector<double> kept() const {
    if (!heard_any()) return {};
    return {best_, static_cast<double>(since_)};
  }
  void go_on_from(std::span<const double> kept) {
    if (kept.size() < 2) return;
    best_ = kept[0];
    since_ = static_cast<std::uint64_t>(kept[1]);
  }

 private:
  double best_ = std::numeric_limits<double>::infinity();
  std::uint64_t since_ = 0;
};

}  // namespace ronda
