#pragma once
#include <cstddef>
#include <optional>

#include <ronda/core/step_control.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/layers/pass.hpp>
#include <ronda/runtime/strategy/replica/control_block.hpp>
#include <ronda/runtime/strategy/step/evaluation.hpp>

namespace ronda {

/// What a rank computes in a step of its strategy: its part of the model on its part of the data. StepRunner calls it,
/// and does all that strategies have in common. On all ranks in the same order.
class Computation {
 public:
  virtual ~Computation() = default;

  /// Throws InputError for a batch whose shapes or rows differ from the plan's.
  virtual void check(const Batch& batch) const = 0;
  /// Submits forward pass, loss and backward pass of the next micro-batch, and marks complete gradients
  /// (StepRunner::listen).
  /// @param here  the batch, in the memory that the model computes in
  virtual void compute(const Batch& here) = 0;
  /// Throws InputError or LogicError if steps cannot have `count` micro-batches.
  virtual void require_micro_batches(std::size_t count) const = 0;

  /// Called before the first of `batches` batches of an evaluation, and after the last.
  virtual void begin_evaluation(std::size_t /*batches*/) {}
  virtual void end_evaluation() {}
  /// Forward pass and loss of a batch, by the current layer states.
  /// @param sums  where the loss is added, in the memory of the device
  virtual Outputs evaluate_batch(const Batch& given, StepControl* sums) = 0;

  /// Forward pass, loss and backward pass of a step's batch, without exchange. Reports each gradient to `on_ready`.
  /// Returns this rank's sum of losses; nullopt if it computes nothing.
  /// @param sums  scratch
  virtual std::optional<double> compute_alone(const Batch& given, const OnReady& on_ready, ControlBlock& sums) = 0;
};

}  // namespace ronda
