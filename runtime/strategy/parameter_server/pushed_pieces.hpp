#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/collectives/host/algorithms/error_feedback.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/runtime/key_value/roles.hpp>

namespace ronda {

/// The part of a bucket of gradients that goes to one server.
struct PushedPiece {
  std::size_t bucket = 0;
  int server = 0;    ///< its rank
  Range elements{};  ///< of the arena
};

/// The buckets in which gradients are pushed.
[[nodiscard]] std::vector<FusionBuffer::Bucket> buckets_to_push(const std::vector<GradientSlot>& slots,
                                                                const FusionOptions& options);
/// A line each, for the plan.
[[nodiscard]] std::vector<std::string> describe_pushes(std::span<const FusionBuffer::Bucket> buckets);

/// The same: who is a server.
[[nodiscard]] std::string describe_roles(const Roles& roles);

/// Cuts buckets where the shares of two servers meet. In the order of buckets, and so of messages between two ranks.
/// @param shares  of the arena's elements, by rank
/// @param parts   of a share: no piece is longer than one of so many parts of it, or 512 KiB
[[nodiscard]] std::vector<PushedPiece> cut_buckets(std::span<const FusionBuffer::Bucket> buckets,
                                                   std::span<const Range> shares, std::size_t parts = 1);

/// A worker's gradients as they travel: as they lie in the arena, or compressed, each piece by itself. What int8, int4
/// and 2bit lose of a number is added to it in the next push, so that servers get the sum of all gradients in the
/// course of steps (see ErrorFeedback).
class PackedPieces {
 public:
  /// @param options  compression, and the seed of rounding
  /// @param worker   this one, among the workers; each rounds by noise of its own
  /// @param arena    of the gradients, float32; outlives this object
  PackedPieces(const FusionOptions& options, int worker, const std::vector<PushedPiece>& pieces, const Buffer& arena);

  [[nodiscard]] std::size_t count() const noexcept { return pieces_.size(); }
  /// What is sent of this piece.
  [[nodiscard]] const Tensor& message(std::size_t piece) const { return pieces_[piece].message; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  ///< of all messages

  void begin_push() noexcept { feedback_.begin_run(); }
  /// The message is that of the gradients as they are now.
  void pack(std::size_t piece, int threads);
  /// From the next push on `take_back` works also when the gradients have changed. Takes as much memory as the losses.
  void keep_before();
  /// The push was dropped: what it carried of earlier losses is not lost. Without `keep_before` this is computed from
  /// the gradients, which have not changed, but in blocks with one that is not finite.
  void take_back(int threads);

  /// Shows what of one push the next builds on.
  void visit(StateVisitor& visitor) { feedback_.visit("pushes", visitor); }
  [[nodiscard]] std::size_t memory() const noexcept { return wire_.bytes() + feedback_.bytes() + before_.bytes(); }

 private:
  struct Piece {
    std::span<const float> gradients;
    Tensor message;
    std::size_t place = 0;  ///< of its losses
  };

  Compression compression_;
  Noise noise_;
  int worker_;
  Buffer wire_;
  std::vector<Piece> pieces_;
  std::uint64_t bytes_ = 0;
  ErrorFeedback feedback_;
  Buffer before_;  ///< what was lost before the last push; empty without `keep_before`
};

/// Where the pieces of one worker's push come to on a server, and what they become. Uncompressed, the memory of a push
/// is the share's gradients.
class ArrivingPieces {
 public:
  /// @param all    as the workers have them
  /// @param server, share  this rank, and its part of the arena
  ArrivingPieces(Compression compression, const std::vector<PushedPiece>& all, int server, Range share);

  [[nodiscard]] Compression compression() const noexcept { return compression_; }
  [[nodiscard]] bool packed() const noexcept { return compression_ != Compression::none; }
  [[nodiscard]] std::size_t memory() const noexcept { return memory_; }  ///< bytes of one push
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  ///< of its messages
  [[nodiscard]] std::span<const PushedPiece> pieces() const noexcept { return pieces_; }
  [[nodiscard]] const Range& share() const noexcept { return share_; }
  /// Where this piece comes to, in the memory of a push.
  [[nodiscard]] Tensor message(std::size_t piece, std::byte* push) const;

  /// Of packed pushes: this piece's part of `share` becomes the sum of its gradients, in the order of `pushes`.
  void sum_piece(std::size_t piece, std::span<const std::byte* const> pushes, float* share, int threads) const;
  /// `share` becomes the sum of the pushes, in their order. The first one, if not packed, may lie there.
  void sum(std::span<const std::byte* const> pushes, float* share, int threads) const;

 private:
  Compression compression_;
  Range share_;
  std::vector<PushedPiece> pieces_;   ///< of this server
  std::vector<std::size_t> offsets_;  ///< of each, in the memory of a push
  std::size_t memory_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace ronda
