#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/compute_device.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/data/device_dataset.hpp>
#include <ronda/optim/updater.hpp>

namespace ronda {

/// The result of a step.
struct StepOutcome {
  StepControl sums;  ///< over all ranks
  UpdateOutcome update;
};

/// What a step has on its device beside the replica: where its sums and its outcome are, in the device's memory.
struct StepPlaces {
  StepControl* sums = nullptr;
  const UpdateOutcome* outcome = nullptr;
};

/// How a device is given steps: batches go in, results come out, in the same order. On the processor the work of a step
/// is done when it is given; a GPU does it later, beside the host, and after the first steps as a replay of what was
/// recorded.
///
/// A step has `micro_batches` pieces of work, one for each micro-batch. Up to `max_in_flight` steps may be begun before
/// the oldest of them is finished. One thread uses it.
class StepQueue {
 public:
  /// Gives the device the work on a micro-batch, which lies on the device. Waits for nothing there.
  using Work = FunctionRef<void(const Batch& here)>;

  virtual ~StepQueue() = default;

  /// Does `work` on the next micro-batch. Before the first of a step the sums are cleared, with `flags`; after the last
  /// the outcome is kept for `finish`. On a GPU the work may be recorded: then `work` is called only once.
  /// @param batch  of the host. In pinned memory (Batch::staging) it stays as it is until its step is finished; in
  ///               other memory until this returns
  /// Throws LogicError where as many steps as may be are in flight; what `work` throws.
  virtual void enqueue(const Batch& batch, const StepFlags& flags, Work work) = 0;
  /// Waits for the oldest step that was begun and not finished; valid until the next `enqueue`. Throws LogicError where
  /// there is none, CommunicationError where the ranks' connection ended.
  virtual const StepOutcome& finish() = 0;
  /// Waits for the steps in flight, whose results nobody will see.
  virtual void drain() noexcept = 0;

  /// Of a step.
  [[nodiscard]] virtual std::size_t micro_batches() const noexcept = 0;
  /// Of the steps from the next one on. Throws LogicError within a step, and on a device that records steps.
  virtual void set_micro_batches(std::size_t count) = 0;
  /// Of the step that is begun next, or has been begun: the number of its next micro-batch, from 0.
  [[nodiscard]] virtual std::size_t micro_batch() const noexcept = 0;
  /// Whether the next micro-batch ends its step.
  [[nodiscard]] virtual bool at_last() const noexcept = 0;
  /// Steps whose last micro-batch was enqueued.
  [[nodiscard]] virtual std::size_t in_flight() const noexcept = 0;
  [[nodiscard]] virtual std::size_t max_in_flight() const noexcept = 0;

  // A step by hand, with none in flight; micro-batches before the last may be enqueued.

  /// The same batch where the device computes; valid until the next call.
  virtual const Batch& place(const Batch& batch) = 0;
  /// The micro-batches of the step by hand are over: the next one begins another step.
  virtual void end_by_hand() noexcept = 0;
  /// The outcome of its update. The host waits; valid until the next call.
  virtual const StepOutcome& outcome_by_hand() = 0;

  // Datasets that the device keeps, so that batches may name their samples alone.

  /// Bytes that `data` would take of the device's memory; none where the queue's device cannot keep it.
  [[nodiscard]] virtual std::size_t bytes_to_keep(const Dataset& data) const = 0;
  /// From now on batches that name samples of `data` are made of what the device holds of it. Throws ResourceError.
  virtual void keep(const Dataset& data, const GatherRows& gather) = 0;
  [[nodiscard]] virtual bool keeps(const Dataset& data) const noexcept = 0;
  /// Waits for the steps in flight, and keeps no data any more.
  virtual void forget_data() noexcept = 0;
};

/// Throws LogicError, which names `function`, where steps were begun and not finished.
void require_none_in_flight(const StepQueue& queue, std::string_view function);
/// For what ends a step: throws LogicError where other micro-batches come first.
void require_last(const StepQueue& queue);
/// For what does not end it: throws LogicError where the next micro-batch is the last.
void require_before_last(const StepQueue& queue);

struct StepQueueOptions {
  std::span<const Field> fields;
  std::size_t rows = 0;           ///< of a micro-batch
  std::size_t micro_batches = 1;  ///< of a step
  std::size_t in_flight = 1;      ///< steps, on a GPU
  bool record = true;             ///< on a GPU: replay steps from the third on
};

/// Bytes of the device's memory that the queue's batches take.
[[nodiscard]] std::size_t bytes_of_queue(const ComputeDevice& device, const StepQueueOptions& options);
/// @param communicator  watches recorded steps, and tells of connections between devices that ended
/// Throws ResourceError.
std::unique_ptr<StepQueue> make_step_queue(const ComputeDevice& device, const Communicator& communicator,
                                           const StepPlaces& places, const StepQueueOptions& options);

}  // namespace ronda
