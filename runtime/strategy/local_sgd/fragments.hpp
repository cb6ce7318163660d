#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/runtime/strategy/local_sgd/outer_step.hpp>
#include <ronda/runtime/strategy/step/own_steps.hpp>
#include <ronda/runtime/strategy/local_sgd/local_sgd.hpp>

namespace ronda {

/// Pieces of the parameters that synchronise one after the other within the steps of a period, so that less is sent at
/// a time, and beside the next steps. Two fragments, 6 steps, a delay of 2:
///
///     steps          1   2   3   4   5   6   7   8   9
///     fragment 0             [=======]           [=====     its changes are measured, travel, and are applied
///     fragment 1                         [=======]
///
/// When changes are applied, what the rank has done since they were measured stays on top: so ranks go on with
/// different parameters, whose difference is that of the last steps. The delay is in steps, not in time, so that the
/// result does not depend on how fast the network is.
///
/// Douillard et al., "Streaming DiLoCo with overlapping communication", 2025; there parameters are mixed instead.
class Fragments {
 public:
  /// Collective.
  /// @param slots    of all parameters
  /// @param changes  as long as the parameters; other use of it is between steps with nothing under way
  Fragments(const Communicator& communicator, const std::vector<GradientSlot>& slots, const Buffer& changes,
            const LocalSgd& local, FusionOptions options);

  /// After so many local steps: measures the changes of the fragment whose turn it is, if any, and sends them with
  /// `own`, which begins anew then.
  void start_due(std::uint64_t step, OwnSteps& own, const OuterStep& outer, const float* values, Stream& stream);
  /// After so many local steps: applies the changes that are due, if any. Whether there were some.
  /// @param told  gains what this rank told with them
  /// @param all   likewise, what all ranks told
  bool finish_due(std::uint64_t step, OwnSteps& told, StepControl& all, OuterStep& outer, float* values,
                  Stream& stream);
  /// Of all that is under way.
  bool finish_all(OwnSteps& told, StepControl& all, OuterStep& outer, float* values, Stream& stream);
  /// Waits for what is under way, and does not apply it.
  void drop_all(Stream& stream);
  /// Lets the messages under way go on.
  void poll();

  void visit(StateVisitor& visitor);
  void add_costs(SynchronisationCosts& costs) const;
  [[nodiscard]] std::vector<std::string> describe() const;
  [[nodiscard]] double exposed_seconds() const noexcept;
  [[nodiscard]] std::size_t memory() const noexcept;

 private:
  struct Fragment {
    std::vector<GradientSlot> slots;
    Range elements;
    std::unique_ptr<FusionBuffer> exchange = {};
    std::uint64_t place = 0;    ///< in a period: after so many steps its changes are measured
    std::uint64_t started = 0;  ///< after this local step
    bool under_way = false;
    OwnSteps own = {};
  };

  void finish(Fragment& fragment, OwnSteps& told, StepControl& all, OuterStep& outer, float* values, Stream& stream);
  [[nodiscard]] float* changes() const noexcept { return reinterpret_cast<float*>(changes_.data()); }
  [[nodiscard]] float* started() const noexcept { return reinterpret_cast<float*>(started_.data()); }

  const Buffer& changes_;
  Buffer started_;  ///< the values when changes were measured
  std::uint64_t period_, delay_, finished_ = 0;
  std::vector<Fragment> fragments_;
};

}  // namespace ronda
