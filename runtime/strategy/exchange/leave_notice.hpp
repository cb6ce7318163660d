#pragma once
#include <cstdint>
#include <memory>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/event.hpp>

namespace ronda {

/// Tells all ranks between two synchronisations that some rank asks to leave (StepFlags::leave): an allreduce of two
/// numbers, about once a second, beside the steps. It is started after a local step, and its result is read so many
/// steps later, the same number on all ranks: so all of them leave after the same step. Changes no other number of a
/// training.
///
/// Steps between start and result, of a period of 12:
///
///     steps      1   2   3   4   5   6   7   8   9  10  11  12
///                [=======][======][======]                   the next one would end with the synchronisation
///
/// How many they are follows from the mean time of the ranks' steps, which travels too; at first 1, and at most twice
/// the last number, because the first steps of a training tell little.
class LeaveNotice {
 public:
  /// Collective.
  explicit LeaveNotice(Communicator communicator);

  /// After a local step. True, on all ranks alike, where a rank has asked to leave. Collective; allocates nothing.
  /// @param asks    this rank asks
  /// @param step    local steps since the last synchronisation, from 1
  /// @param period  local steps from one synchronisation to the next; all ranks learn then who asks
  [[nodiscard]] bool after_step(bool asks, std::uint64_t step, std::uint64_t period);
  /// Within a step: lets the message in flight make progress.
  void poll() const;
  /// Drops the result in flight: before ranks synchronise. Collective.
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
  std::uint64_t started_ = 0;    ///< after this local step, last; 0: not in this period
  double started_at_ = 0;        ///< when
  double seconds_per_step_ = 0;  ///< of this rank
};

}  // namespace ronda
