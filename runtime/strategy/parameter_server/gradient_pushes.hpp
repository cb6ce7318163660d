#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/collectives/ready_buckets.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/runtime/key_value/roles.hpp>
#include <ronda/runtime/strategy/parameter_server/message_window.hpp>
#include <ronda/runtime/strategy/parameter_server/pushed_pieces.hpp>

namespace ronda {

/// A worker's gradients on their way to the servers: the pieces of a bucket go when its last gradient is ready, beside
/// the rest of backward, a few at a time to each server. Sent from where they lie, if not compressed.
class GradientPushes {
 public:
  /// @param slots    of the gradients, in the order of `buckets`
  /// @param arena    of the gradients, float32; outlives this object
  /// @param worker   this one, among the workers
  /// @param options  what they are compressed by
  GradientPushes(Communicator communicator, int worker, std::vector<GradientSlot> slots,
                 std::span<const FusionBuffer::Bucket> buckets, const std::vector<PushedPiece>& pieces,
                 const Buffer& arena, const FusionOptions& options);

  void begin();
  /// Instead of `begin`, in a step without a push: what rounds by noise counts steps, which are the same on all ranks.
  void skip() { packed_.begin_push(); }
  /// The gradient of `id` is complete. Lets what was sent before go on. Throws LogicError where that was said before in
  /// this step, or there is no such gradient.
  void mark_ready(ParameterId id, Stream& stream);
  /// Sends what is left: of a model without parameters nothing. Throws LogicError where a gradient was never marked.
  void finish(Stream& stream);
  /// Instead of `finish`, where there are no gradients: sends what lies there, for nobody to look at.
  void start_all(Stream& stream);
  /// After one of these two: sends what may go next. Whether all is sent; until then no gradient changes.
  [[nodiscard]] bool move_on() { return sends_->move_on(); }
  void wait() { sends_->wait(); }
  /// From the next step on `take_back` works also when gradients have changed. Takes memory.
  void keep_before() { packed_.keep_before(); }
  /// The last push changed no parameter: the servers dropped it, or the step that took it was skipped. Before gradients
  /// change, but with `keep_before`.
  void take_back(Stream& stream) { packed_.take_back(stream.threads()); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return packed_.bytes(); }  ///< of a step, as sent
  [[nodiscard]] std::size_t memory() const noexcept { return packed_.memory(); }
  /// Shows what of one step's compression the next builds on.
  void visit(StateVisitor& visitor) { packed_.visit(visitor); }

 private:
  struct Piece {
    std::size_t bucket = 0, lane = 0;
  };
  void release_full_buckets(Stream& stream);
  void release_next(Stream& stream);

  ReadyBuckets ready_;
  PackedPieces packed_;
  std::vector<Piece> pieces_;             ///< in the order in which gradients become ready
  std::unique_ptr<MessageWindow> sends_;  ///< a lane for each server
  std::vector<std::size_t> released_;     ///< of a step, by lane
  std::size_t next_ = 0;                  ///< pieces before it are released
};

/// Gradients of a server's share that come from the workers.
class GradientArrivals {
 public:
  /// @param pieces   as the workers have them
  /// @param share    of this rank
  /// @param arena    of the gradients: uncompressed, those of worker 0 come here, to their place
  /// @param options  what they are compressed by
  GradientArrivals(Communicator communicator, const Roles& roles, const std::vector<PushedPiece>& pieces, Range share,
                   const Buffer& arena, const FusionOptions& options);

  void start(Stream& stream);
  /// Lets them come. Whether all have.
  [[nodiscard]] bool move_on() { return receives_->move_on(); }
  [[nodiscard]] std::span<const PushedPiece> pieces() const noexcept { return pieces_.pieces(); }
  /// Pieces, from the first on, that have come from all workers.
  [[nodiscard]] std::size_t come() const noexcept { return std::min(receives_->done_in_all(), pieces().size()); }
  /// Of a piece that has come: the gradients of the workers that are not in the arena yet, in the order of their ranks.
  /// Compressed ones are added up there. Until the next call.
  [[nodiscard]] std::span<const float* const> take(std::size_t piece, Stream& stream);
  /// All that have come, piece by piece: the same of the whole share.
  [[nodiscard]] std::span<const float* const> take_all(Stream& stream);
  /// The arena's share becomes the sum, in the order of ranks.
  void add_up(Stream& stream);
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  ///< of a step, as sent
  [[nodiscard]] std::size_t memory() const noexcept { return memory_.bytes(); }
  /// Shows as many runs as the workers' pushes do.
  void visit(StateVisitor& visitor);

 private:
  ArrivingPieces pieces_;
  Buffer memory_;                     ///< of pushes that do not come to the arena, one after the other
  float* first_;                      ///< of the share, in the arena
  std::vector<const float*> others_;  ///< their shares
  std::vector<const float*> others_of_piece_;
  std::vector<std::byte*> pushes_;  ///< by worker
  std::unique_ptr<MessageWindow> receives_;
  std::uint64_t bytes_ = 0;
  std::int64_t runs_ = 0;
};

}  // namespace ronda
