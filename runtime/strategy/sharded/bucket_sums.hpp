#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/runtime/strategy/sharded/gradient_ring.hpp>
#include <ronda/runtime/strategy/exchange/step_agreements.hpp>

namespace ronda {

/// Sums the buckets of a GradientRing over the ranks, in their order; each rank keeps the sums of its share
/// (share_of_rank) alone, in memory of their own. In each backward pass, on all ranks alike:
///
///     begin, start of each bucket and wait_until_summed as backward needs room, finish
///
/// Allocates nothing. Collective.
class BucketSums {
 public:
  virtual ~BucketSums() = default;
  /// @param adds  to the sums of the pass before; else in their place
  virtual void begin(bool adds) = 0;
  /// This rank's gradients of the next bucket are complete.
  virtual void start(Stream& stream) = 0;
  /// Returns when all ranks have read the first `buckets`, fewer than were started, so that they may be overwritten.
  virtual void wait_until_summed(std::size_t buckets) = 0;
  /// Lets an inline engine make progress.
  virtual void poll() = 0;
  /// All were started, and this rank has done its part of the sums. Its own are complete when all ranks have come to a
  /// collective after it.
  virtual void finish() = 0;

  // For plans and reports.

  [[nodiscard]] virtual std::string_view algorithm() const noexcept = 0;
  [[nodiscard]] virtual std::vector<std::string> report() const { return {}; }
  [[nodiscard]] virtual std::size_t memory() const noexcept { return 0; }
};

/// In the memory of a node, where all ranks are on it: each rank sums a part of every bucket, all of the same size,
/// over all ranks' gradients, and writes the sums to the rank whose share they are in. A rank that has summed a bucket
/// says so when it comes to the meeting of the next one. So there is one meeting a bucket, and a rank goes on computing
/// until the bucket before is due. Order of summation: by rank, as that of the node's allreduce.
class NodeBucketSums final : public BucketSums {
 public:
  /// Collective.
  /// @param rings  the memory of each rank's ring
  /// @param sums   that of each rank's share
  /// @param count  elements of the arena, which the ranks share out
  NodeBucketSums(const Communicator& communicator, const GradientRing& ring, std::vector<const float*> rings,
                 std::span<float* const> sums, std::size_t count, int threads);

  void begin(bool adds) override;
  void start(Stream& stream) override;
  void wait_until_summed(std::size_t buckets) override;
  void poll() override { static_cast<void>(came_.ready()); }
  void finish() override { sum_up_to(started_); }
  [[nodiscard]] std::string_view algorithm() const noexcept override { return "node"; }

 private:
  /// What this rank sums: neighbours in all rings, of one rank's share.
  struct Piece {
    std::size_t place;  ///< in a ring, in elements
    float* sums;
    std::size_t count;
  };
  void add_pieces(std::size_t first, std::size_t end, const Repetition& memory, std::span<float* const> sums,
                  std::size_t count);
  void sum_up_to(std::size_t buckets);
  void sum(const Piece& piece) const;

  std::vector<const float*> rings_;  ///< by rank
  std::vector<Piece> pieces_;
  std::vector<std::size_t> ends_;  ///< by bucket, of its pieces
  NodeMeeting meeting_;
  int threads_;
  bool adds_ = false;
  Event came_;                                         ///< to the meeting of the bucket that was started last
  std::size_t started_ = 0, summed_ = 0, by_all_ = 0;  ///< buckets: of this rank; that are known to be summed by all
};

/// By messages, beside the backward pass: each rank sums a part of every bucket, all of the same size, by a
/// reduce-scatter, and sends it to the rank whose share it is in. Two buckets are under way at a time, one in either.
/// Order of summation: around the ring, as Ring's.
class MessageBucketSums final : public BucketSums {
 public:
  /// Collective.
  /// @param gradients  the arena's addresses, of ring memory
  /// @param sums       of this rank's share, without padding
  /// @param count      as for NodeBucketSums
  MessageBucketSums(Communicator communicator, const GradientRing& ring, float* gradients, std::span<float> sums,
                    std::size_t count, int threads);

  void begin(bool adds) override;
  void start(Stream& stream) override;
  void wait_until_summed(std::size_t buckets) override;
  void poll() override;
  void finish() override;
  [[nodiscard]] std::string_view algorithm() const noexcept override { return "ring"; }
  [[nodiscard]] std::vector<std::string> report() const override;
  [[nodiscard]] std::size_t memory() const noexcept override;

 private:
  struct Bucket {
    std::size_t bytes;
    std::unique_ptr<Collective> scatter, deliver;
    std::span<const float> mine;  ///< where this rank's share of it is delivered
    float* sums;                  ///< and where it is kept
    Event scattered{}, delivered{};
  };
  void deliver_up_to(std::size_t buckets);

  std::vector<Bucket> buckets_;
  int threads_;
  bool adds_ = false;
  std::size_t started_ = 0, delivering_ = 0, summed_ = 0;
};

}  // namespace ronda
