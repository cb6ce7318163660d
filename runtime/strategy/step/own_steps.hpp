#pragma once
#include <cstdint>

#include <ronda/core/step_control.hpp>
#include <ronda/optim/updater.hpp>

namespace ronda {

/// What a rank has done by itself since it last told the others.
struct OwnSteps {
  StepControl sums;  ///< of finite steps; and the flags that it has raised
  bool nonfinite = false, spoiled = false;
  std::uint64_t bad_steps = 0, first_bad = 0;  ///< steps that were one of these; the number of the first

  /// Adds a step.
  /// @param number  of the step, from 1
  void count(const StepControl& step, const UpdateOutcome& outcome, std::uint64_t number) noexcept;
  /// Adds later steps that were told with these.
  void add(const OwnSteps& later) noexcept;
  /// As it travels.
  [[nodiscard]] StepControl told() const noexcept;
};

/// Whether what all ranks told, summed, has a step that was not finite; or that left such parameters.
[[nodiscard]] bool tells_nonfinite(const StepControl& all) noexcept;
[[nodiscard]] bool tells_spoiled(const StepControl& all) noexcept;
/// Not whether ranks have written their part of a checkpoint.
void forget_writing(StepControl& all) noexcept;

}  // namespace ronda
