#pragma once
#include <cstdint>
#include <memory>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/stream.hpp>

namespace ronda {

/// Notifies all ranks between two synchronisations that some rank asks to leave (StepFlags::leave), by an allreduce of
/// two numbers, about once a second, during the steps. It is started after a local step, and its result is read an
/// *interval* of steps later, the same on all ranks, so that all leave after the same step. The training's numbers do
/// not change.
///
/// Steps between start and result, for a period of 12:
///
///     steps      1   2   3   4   5   6   7   8   9  10  11  12
///                [=======][======][======]                   the next one would end with the synchronisation
///
/// The interval follows from the mean time of the ranks' steps, the second number of the allreduce. It is 1 at first,
/// and at most twice the last one, because the first steps of a training are not typical.
class LeaveNotice {
 public:
  /// Collective.
  explicit LeaveNotice(Communicator communicator);

  /// Call after each local step. True, on all ranks alike, if a rank has asked to leave. Collective; allocates nothing.
  /// @param asks    whether this rank asks to leave
  /// @param step    local steps since the last synchronisation, from 1
  /// @param period  local steps from one synchronisation to the next, which tells all ranks of requests anyway
  [[nodiscard]] bool after_step(bool asks, std::uint64_t step, std::uint64_t period);
  /// Call within a step: lets the message in flight make progress.
  void poll() const;
  /// Drops the result in flight. Call before ranks synchronise. Collective.
  void finish();

 private:
  void start(bool asks, std::uint64_t step);
  void choose_interval();

  struct Numbers {
    double leave = 0;    ///< ranks that ask
    double seconds = 0;  ///< of a step; 0: not measured yet
  };
  [[nodiscard]] Numbers& numbers() const noexcept { return *reinterpret_cast<Numbers*>(memory_.data()); }

  int ranks_;
  Buffer memory_;
  std::unique_ptr<Collective> sum_;
  Event arrival_;
  bool in_flight_ = false;
  std::uint64_t interval_ = 1;   ///< steps from a start to its result
  std::uint64_t started_ = 0;    ///< local step of the last start; 0: none in this period
  double started_at_ = 0;        ///< its time
  double seconds_per_step_ = 0;  ///< of this rank
};

}  // namespace ronda
