#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/parameter.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/core/stream.hpp>

namespace ronda {

/// A gradient that will live in the buffer.
struct GradientSlot {
  ParameterId id{};
  std::string name;
  std::size_t offset = 0, bytes = 0;  ///< in the arena; 64-byte aligned
};

struct FusionOptions {
  std::size_t first_bucket_bytes = std::size_t{256} << 10;  ///< small, so that the first reduction starts early
  std::size_t bucket_bytes = std::size_t{16} << 20;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic;
  Compression compression = Compression::none;  ///< of the gradients; the control block is never compressed
  std::uint64_t seed = 1;                       ///< of stochastic rounding
  DType dtype = DType::float32;                 ///< of the gradients, and so of their sums
  std::string label = "bucket";                 ///< for messages, and of the states that compression keeps: `bucket 3`
  bool late = false;  ///< buckets start in `wait`: for those who may sum the gradients themselves
};

/// All gradients of a model in one allocation, which is also the wire buffer: nothing is packed or copied.
///
/// Slots lie in the order in which backward finishes them, so a *bucket* is a slice of neighbours. When the last
/// gradient of a bucket is ready its allreduce starts, beside the rest of backward. The step's control block goes with
/// the last. (On one node, where the ranks compute and reduce by turns, that may as well wait: `FusionOptions::late`.)
/// On a device the collectives have a stream of their own, which waits for the point at which the gradient is ready.
///
/// Used in every step as begin, mark_ready for each slot (any order), wait. Allocates nothing after construction.
class FusionBuffer {
 public:
  /// Collective. `slots` in ascending offset, back to back. `arena` is memory from `communicator.allocate`, at
  /// least as long as the last slot's end, and outlives this object. Where it is a device's, so is the control block.
  /// Throws LogicError where a parameter has two slots, or slots are not aligned, overlap, or end beyond the arena.
  FusionBuffer(Communicator communicator, std::vector<GradientSlot> slots, const Buffer& arena,
               const FusionOptions& options);
  ~FusionBuffer();
  FusionBuffer(const FusionBuffer&) = delete;

  /// Starts counting.
  void begin();
  /// Where this rank's sums go in a step, and all ranks' are found after it: zero at first, cleared by the caller. On a
  /// device it is the device's to read and write.
  [[nodiscard]] StepControl& control() noexcept;
  /// The gradient of `id` is complete. Starts the bucket it completes, and lets an inline engine make progress.
  void mark_ready(ParameterId id, Stream& stream);
  /// Within a step: lets an inline engine make progress with the buckets that were started.
  void poll();
  /// Returns when every bucket is reduced: gradients are sums over all ranks then, and so is the control block. On a
  /// device the stream waits, not the host (but where buckets go through the host). Throws LogicError where a slot was
  /// never marked.
  void wait(Stream& stream);
  /// Instead of `wait`, where buckets start late: reduces the control block alone. Gradients stay this rank's own.
  void wait_for_control(Stream& stream);

  /// Whether a step goes on without the host once it was begun, so that a device may record it and do it again.
  [[nodiscard]] bool moves_alone() const noexcept { return moves_alone_; }

  struct Bucket {
    std::size_t first_slot, end_slot, offset, bytes;
    std::string algorithm{};
    Compression compression = Compression::none;  ///< as chosen
  };
  [[nodiscard]] std::span<const Bucket> buckets() const noexcept;
  /// Neighbours up to the size that a bucket may have; a slot larger than that has one of its own. At least one bucket.
  [[nodiscard]] static std::vector<Bucket> fill(std::span<const GradientSlot> slots, const FusionOptions& options);
  /// Seconds that `wait` has waited so far: communication that nothing hid.
  [[nodiscard]] double exposed_seconds() const noexcept;
  /// Seconds that the runs of a bucket took so far, waited for or not; of the one that took longest. Not in a step.
  [[nodiscard]] double longest_seconds() const noexcept;
  /// Bytes that this rank has sent so far. Not in a step.
  [[nodiscard]] std::uint64_t sent_bytes() const noexcept;
  /// Bytes that this rank keeps for compression, beside the arena.
  [[nodiscard]] std::size_t memory() const noexcept;
  /// Shows what of one step's compression the next builds on: see Collective.
  void visit(StateVisitor& visitor);
  /// A line a bucket, for the plan that ranks compare.
  [[nodiscard]] std::vector<std::string> describe() const;
  /// A line a bucket: what its runs took on this rank, and what the cost model has, where there is one. Not in a step.
  [[nodiscard]] std::vector<std::string> report() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  bool moves_alone_;
};

}  // namespace ronda
