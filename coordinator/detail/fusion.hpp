#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <ronda/coordinator/detail/link.hpp>
#include <ronda/coordinator/detail/submission.hpp>

namespace ronda {

/// Packs tensors that are ready on all ranks into batches of one operation and type, reduces these, and hands the
/// results back. All ranks give the same tensors in the same order, a rank that has joined their descriptors alone.
///
/// A batch is copied into one of the link's stages while the one before it is reduced; a tensor that is larger than a
/// batch goes in pieces.
class TensorFusion : public FrameOwner {
 public:
  explicit TensorFusion(CoordinatorLink& link) : link_(link) {}

  /// Adds all tensors of a name. @param submission  null on a rank that has joined: it counts as zeros, or whatever
  /// else changes nothing
  void add(const Descriptor& descriptor, Submission* submission);
  /// Reduces what was added, in batches of at most `batch_bytes`, and ends each submission when all of it is done.
  [[nodiscard]] Task run(std::size_t batch_bytes);

  [[nodiscard]] std::size_t bytes_done() const noexcept { return bytes_done_; }
  [[nodiscard]] std::size_t batches_done() const noexcept { return batches_done_; }

 private:
  /// One tensor, to be reduced as numbers of a type that need not be its own.
  struct Piece {
    Submission* submission;
    std::byte* data;  ///< null on a rank that has joined
    std::size_t bytes;
    ReduceOp op;
    DType dtype;
    bool contributes;  ///< this rank's data counts
  };
  /// A part of a piece that lies in a batch.
  struct Part {
    const Piece* piece;
    std::size_t begin, bytes;  ///< in the piece
  };
  struct Batch {
    std::vector<Part> parts;
    std::size_t bytes = 0;
    bool under_way = false;
  };

  void fill(Batch& batch, std::size_t batch_bytes);
  void copy_in(const Batch& batch, std::span<std::byte> stage) const;
  void copy_out(int stage);

  CoordinatorLink& link_;
  std::vector<Piece> pieces_;
  std::size_t next_piece_ = 0, next_byte_ = 0;  ///< the first that is in no batch yet
  Batch batches_[CoordinatorLink::stages];
  std::size_t bytes_done_ = 0, batches_done_ = 0;
};

/// Writes over `bytes` what changes no result of `op`.
void fill_neutral(ReduceOp op, DType dtype, std::span<std::byte> bytes);

}  // namespace ronda
