#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/data/device_dataset.hpp>
#include <ronda/optim/updater.hpp>

namespace ronda {

/// The result of a step.
struct StepOutcome {
  StepControl sums;  ///< sums over all ranks
  UpdateOutcome update;
};

/// Addresses of a step's sums and outcome in the device's memory.
struct StepPlaces {
  StepControl* sums = nullptr;
  const UpdateOutcome* outcome = nullptr;
};

/// Submits steps to a device: batches go in, and results come out in the same order. On the CPU, `enqueue` does the
/// work. A GPU does it asynchronously to the host, and replays recorded work after the first steps.
///
/// A step consists of `micro_batches` pieces of work, one per micro-batch. Up to `max_in_flight` steps may be started
/// before the oldest is finished. Used by one thread.
class StepQueue {
 public:
  /// Submits the work on a micro-batch in the device's memory, without waiting for the device.
  using Work = FunctionRef<void(const Batch& here)>;

  virtual ~StepQueue() = default;

  /// Submits `work` on the next micro-batch. Clears the sums, except `flags`, before the first micro-batch of a step;
  /// keeps the outcome for `finish` after the last. On a GPU the work may be recorded: then `work` is called only once.
  /// @param batch  in host memory. In pinned memory (Batch::staging) it must not change until its step is finished; in
  ///               other memory until this returns
  /// Throws LogicError if max_in_flight() steps are in flight; rethrows errors of `work`.
  virtual void enqueue(const Batch& batch, const StepFlags& flags, Work work) = 0;
  /// Waits for the oldest unfinished step. The result is valid until the next `enqueue`. Throws LogicError if no step
  /// is in flight, CommunicationError if the ranks' connection ended.
  virtual const StepOutcome& finish() = 0;
  /// Waits for the steps in flight and discards their results.
  virtual void drain() noexcept = 0;

  /// Micro-batches per step.
  [[nodiscard]] virtual std::size_t micro_batches() const noexcept = 0;
  /// Sets the micro-batches per step from the next step on. Throws LogicError within a step, and on a device that
  /// records steps.
  virtual void set_micro_batches(std::size_t count) = 0;
  /// Number of the next micro-batch within its step, from 0.
  [[nodiscard]] virtual std::size_t micro_batch() const noexcept = 0;
  /// True if the next micro-batch is the last of its step.
  [[nodiscard]] virtual bool at_last() const noexcept = 0;
  /// Number of steps whose last micro-batch was enqueued and which are not finished.
  [[nodiscard]] virtual std::size_t in_flight() const noexcept = 0;
  [[nodiscard]] virtual std::size_t max_in_flight() const noexcept = 0;

  // Manual steps, with no step in flight; micro-batches before the last may be enqueued.

  /// Returns the batch in the device's memory; valid until the next call.
  virtual const Batch& place(const Batch& batch) = 0;
  /// Ends the micro-batches of the manual step: the next one begins another step.
  virtual void end_by_hand() noexcept = 0;
  /// Waits for the outcome of the manual step's update; valid until the next call.
  virtual const StepOutcome& outcome_by_hand() = 0;

  // Datasets in the device's memory, so that batches need only the numbers of their samples.

  /// Bytes of device memory that `data` would take; 0 if the device cannot keep it.
  [[nodiscard]] virtual std::size_t bytes_to_keep(const Dataset& data) const = 0;
  /// Copies `data` to the device: later batches that name its samples are gathered there. Throws ResourceError.
  virtual void keep(const Dataset& data, const GatherRows& gather) = 0;
  [[nodiscard]] virtual bool keeps(const Dataset& data) const noexcept = 0;
  /// Waits for the steps in flight, and frees all kept datasets.
  virtual void forget_data() noexcept = 0;
};

/// Throws a LogicError that names `function` if steps are in flight.
void require_none_in_flight(const StepQueue& queue, std::string_view function);
/// For functions that end a step: throws LogicError unless the next micro-batch is the last.
void require_last(const StepQueue& queue);
/// For functions that do not end a step: throws LogicError if the next micro-batch is the last.
void require_before_last(const StepQueue& queue);

struct StepQueueOptions {
  std::span<const Field> fields;
  std::size_t rows = 0;           ///< per micro-batch
  std::size_t micro_batches = 1;  ///< per step
  std::size_t in_flight = 1;      ///< maximum number of steps in flight, on a GPU
  bool record = true;             ///< on a GPU: replay steps from the third on
};

/// Bytes of device memory that the queue's batches take.
[[nodiscard]] std::size_t bytes_of_queue(const ComputeDevice& device, const StepQueueOptions& options);
/// @param communicator  watches recorded steps, and reports failed connections between devices
/// Throws ResourceError.
std::unique_ptr<StepQueue> make_step_queue(const ComputeDevice& device, const Communicator& communicator,
                                           const StepPlaces& places, const StepQueueOptions& options);

}  // namespace ronda
