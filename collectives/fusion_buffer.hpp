#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/core/stream.hpp>

namespace ronda {

/// Place of one gradient in the buffer.
struct GradientSlot {
  ParameterId id{};
  std::string name;
  std::size_t offset = 0, bytes = 0;  ///< in the arena, in bytes; 64-byte aligned
};

struct FusionOptions {
  std::size_t first_bucket_bytes = std::size_t{256} << 10;  ///< small, so that the first reduction starts early
  std::size_t bucket_bytes = std::size_t{16} << 20;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic;
  Compression compression = Compression::none;  ///< of the gradients; the control block is never compressed
  std::uint64_t seed = 1;                       ///< for stochastic rounding
  DType dtype = DType::float32;                 ///< of the gradients and of their sums
  std::string label = "bucket";                 ///< in messages and in the names of compression states: `bucket 3`
  bool late = false;  ///< buckets start in `wait`: for strategies that may sum the gradients themselves
};

/// All gradients of a model in one allocation, from which collectives send directly: nothing is packed or copied.
///
/// Slots are in the order in which backward completes them, so a *bucket* is a contiguous range of slots. A bucket's
/// allreduce starts when its last gradient is ready, and overlaps with the rest of backward. The step's control block
/// is reduced together with the last bucket. (On one node, ranks that alternate between computing and reducing lose
/// nothing if all buckets start in `wait`: `FusionOptions::late`.) On a device the collectives have their own stream,
/// which waits until the gradient is ready.
///
/// Usage in every step: begin, mark_ready for each slot (in any order), wait. Allocates nothing after construction.
class FusionBuffer {
 public:
  /// Collective. `slots` in ascending offset, back to back. `arena` is memory from `communicator.allocate`, at least as
  /// long as the last slot's end, and outlives this object. If it is device memory, so is the control block. Throws
  /// LogicError if a parameter has two slots, or if slots are not aligned, overlap, or end beyond the arena.
  FusionBuffer(Communicator communicator, std::vector<GradientSlot> slots, const Buffer& arena,
               const FusionOptions& options);
  ~FusionBuffer();
  FusionBuffer(const FusionBuffer&) = delete;

  /// Starts a step: no gradient is ready.
  void begin();
  /// The step's control block: input is this rank's sums, output after the step the sums over all ranks. Zero after
  /// construction, afterwards cleared by the caller. In device memory if the arena is: only the device may then read
  /// and write it.
  [[nodiscard]] StepControl& control() noexcept;
  /// Marks the gradient of `id` as complete. Starts the allreduce of a bucket that this completes, and lets an inline
  /// engine make progress.
  void mark_ready(ParameterId id, Stream& stream);
  /// Lets an inline engine make progress with the started buckets. Call within a step.
  void poll();
  /// Waits until every bucket is reduced: the gradients and the control block then hold sums over all ranks. On a
  /// device the stream waits, not the host (the host waits if buckets are staged through host memory). Throws
  /// LogicError if a slot was not marked.
  void wait(Stream& stream);
  /// For `late` buckets, in place of `wait`: reduces only the control block. The gradients remain those of this rank.
  void wait_for_control(Stream& stream);

  /// Whether a started step completes without the host, so that a device can record and replay it.
  [[nodiscard]] bool moves_alone() const noexcept { return moves_alone_; }

  struct Bucket {
    std::size_t first_slot, end_slot, offset, bytes;
    std::string algorithm{};
    Compression compression = Compression::none;  ///< as chosen by the plan
  };
  [[nodiscard]] std::span<const Bucket> buckets() const noexcept;
  /// Groups neighbouring slots into buckets of at most the configured size; a larger slot has a bucket of its own.
  /// Returns at least one bucket.
  [[nodiscard]] static std::vector<Bucket> fill(std::span<const GradientSlot> slots, const FusionOptions& options);
  /// Total seconds spent waiting in `wait`: communication not hidden by computing.
  [[nodiscard]] double exposed_seconds() const noexcept;
  /// Total seconds of all runs of the bucket with the largest total, including time hidden by computing. Not to be
  /// called within a step.
  [[nodiscard]] double longest_seconds() const noexcept;
  /// Bytes that this rank has sent so far. Not to be called within a step.
  [[nodiscard]] std::uint64_t sent_bytes() const noexcept;
  /// Bytes that this rank holds for compression, in addition to the arena.
  [[nodiscard]] std::size_t memory() const noexcept;
  /// Visits the compression state that the next step depends on: see Collective::visit.
  void visit(StateVisitor& visitor);
  /// One line per bucket, for the plan that ranks compare.
  [[nodiscard]] std::vector<std::string> describe() const;
  /// One line per bucket: the measured time of its runs on this rank, and the cost model's prediction if there is one.
  /// Not to be called within a step.
  [[nodiscard]] std::vector<std::string> report() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  bool moves_alone_;
};

}  // namespace ronda
