#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/collectives/ready_buckets.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/runtime/key_value/key_value_roles.hpp>

namespace ronda {

/// The part of a bucket of gradients that goes to one server.
struct PushedPiece {
  std::size_t bucket = 0;
  int server = 0;  ///< its rank
  Range elements;  ///< of the arena
};

/// The buckets in which gradients are pushed.
[[nodiscard]] std::vector<FusionBuffer::Bucket> buckets_to_push(const std::vector<GradientSlot>& slots,
                                                                const FusionOptions& options);
/// A line each, for the plan.
[[nodiscard]] std::vector<std::string> describe_pushes(std::span<const FusionBuffer::Bucket> buckets);

/// Cuts buckets where the shares of two servers meet. In the order of buckets, and so of messages between two ranks.
/// @param shares  of the arena's elements, by rank
[[nodiscard]] std::vector<PushedPiece> cut_buckets(std::span<const FusionBuffer::Bucket> buckets,
                                                   std::span<const Range> shares);

/// A worker's gradients on their way to the servers: a bucket goes when its last gradient is ready, beside the rest of
/// backward. Sent from where they lie.
class GradientPushes {
 public:
  /// @param slots  of the gradients, in the order of `buckets`
  /// @param arena  of the gradients, float32; outlives this object
  GradientPushes(Communicator communicator, std::vector<GradientSlot> slots,
                 std::span<const FusionBuffer::Bucket> buckets, const std::vector<PushedPiece>& pieces,
                 const Buffer& arena);

  void begin();
  /// The gradient of `id` is complete. Lets what was sent before go on. Throws LogicError where that was said before in
  /// this step, or there is no such gradient.
  void mark_ready(ParameterId id, Stream& stream);
  /// Sends what is left: of a model without parameters nothing. Throws LogicError where a gradient was never marked.
  void finish(Stream& stream);
  /// Instead of `finish`, where there are no gradients: sends what lies there.
  void start_all(Stream& stream);
  /// Returns when all is sent; until then no gradient changes.
  void wait(Stream& stream);
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  ///< of a step

 private:
  struct Push {
    std::size_t bucket = 0;
    std::unique_ptr<Collective> send = {};
    Event sent = {};
  };
  void start_full_buckets(Stream& stream);

  ReadyBuckets ready_;
  std::vector<Push> pushes_;
  std::size_t started_ = 0, oldest_ = 0;  ///< pushes: those before it are started, are known to be done
  std::uint64_t bytes_ = 0;
};

/// Gradients of a server's share that come from the workers.
class GradientArrivals {
 public:
  /// @param pieces  as the workers have them
  /// @param share   of this rank
  /// @param arena   of the gradients: those of worker 0 come here, to their place
  GradientArrivals(Communicator communicator, const KeyValueRoles& roles, const std::vector<PushedPiece>& pieces,
                   Range share, const Buffer& arena);

  void start(Stream& stream);
  void wait(Stream& stream);
  /// This share of the gradients of the other workers, in the order of their ranks.
  [[nodiscard]] std::span<const float* const> others() const noexcept { return others_; }
  /// Adds the others' to those of worker 0, in this order.
  void add_up(Stream& stream);
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  ///< of a step
  [[nodiscard]] std::size_t memory() const noexcept { return memory_.bytes(); }

 private:
  Buffer memory_;  ///< of the others', one after the other
  float* first_;   ///< of the share, in the arena
  std::size_t count_;
  std::vector<const float*> others_;
  std::vector<std::unique_ptr<Collective>> receives_;
  std::vector<Event> received_;
  std::uint64_t bytes_ = 0;
};

}  // namespace ronda
