#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace ronda {

/// What a coordinator tunes: how much goes in one batch, and how long it waits for more to come after the first tensor
/// of a cycle.
struct CycleSettings {
  std::size_t batch_bytes = 0;
  double gather_seconds = 0;
  bool operator==(const CycleSettings&) const = default;
};

/// Looks for the settings with which most is done in the time that tensors are under way. It climbs: from where it
/// stands it tries one neighbour after the other, each measured right after the place it starts from, and goes where it
/// is clearly better; when no neighbour is, it stays, until the work has become another. Plain arithmetic: rank 0 has
/// one, and tells the others.
class CycleTuner {
 public:
  struct Limits {
    std::size_t least_batch = std::size_t{256} << 10, most_batch = std::size_t{4} << 20;  ///< powers of two
    std::optional<std::size_t> fixed_batch;
    std::optional<double> fixed_gather;
  };
  explicit CycleTuner(const Limits& limits);

  [[nodiscard]] CycleSettings settings() const noexcept;
  [[nodiscard]] bool settled() const noexcept { return settled_; }

  /// One cycle in which something was done. @param seconds  since the last one, or since there was something to do
  /// @param work  done in it, in any unit. True where the settings have changed.
  bool observe(double seconds, double work);

 private:
  struct Place {
    int batch = 0, gather = 0;  ///< indices of choices
    bool operator==(const Place&) const = default;
  };
  [[nodiscard]] bool may_be_batch(int index) const noexcept;
  [[nodiscard]] bool may_be_gather(int index) const noexcept;
  [[nodiscard]] std::optional<Place> next_neighbour();
  void end_of_window();

  Limits limits_;
  Place here_, measured_;  ///< the best so far; what is in force
  double rate_here_ = 0;   ///< work a second
  int direction_ = 0;      ///< the next neighbour to try
  int without_gain_ = 0;   ///< neighbours in turn that were no better
  bool settled_ = false;
  double settled_work_ = 0;  ///< a cycle's, when it settled
  double seconds_ = 0, work_ = 0;
  int cycles_ = 0;
};

}  // namespace ronda
