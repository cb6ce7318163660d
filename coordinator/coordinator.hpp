#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/reduce_op.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

class CoordinatorLoop;
class Submission;

struct CoordinatorOptions {
  /// Bytes in one fused batch; a power of two. Left out, it is tuned while tensors are reduced, and what is largest
  /// depends on the ranks: 4 MiB on one node, 16 MiB across several.
  std::optional<std::size_t> batch_bytes = {};
  /// Seconds to wait for more tensors before a cycle; left out, it is tuned.
  std::optional<double> gather_seconds = {};
  /// Seconds after which `on_warning` hears of a tensor that some ranks have submitted and others have not, or of ranks
  /// that wait in `join` or `close`; then again each time that the wait is twice as long. 0: never.
  double missing_warning = 60;
  /// Seconds after which that fails. 0: never. A rank may be busy for as long as its program likes; one that is gone or
  /// takes no part any more is found by WorldOptions::communication_timeout.
  double missing_limit = 0;
  /// Called by the coordinator's thread, on every rank, with one line: of ranks that are late, and of what the ranks
  /// had to do without, such as shared memory. Must not throw, nor call the coordinator, which goes on when it returns.
  std::function<void(const std::string&)> on_warning = {};
  /// The first rank of the coordinator, and of each group that is split off, also prints these lines on standard error.
  bool print_warnings = false;
};

/// Throws InputError where an option cannot be; so does a Coordinator.
void require_sense(const CoordinatorOptions& options);

/// A tensor under way. A small value; copies refer to the same.
class Ticket {
 public:
  Ticket() = default;
  Ticket(std::shared_ptr<Submission> submission, std::uint64_t number);
  /// From any thread.
  [[nodiscard]] bool done() const noexcept;
  /// Returns when the tensors hold the result; from any thread, as often as one likes. Throws LogicError where the
  /// ranks submitted different things, CommunicationError where some did not submit, went away, or could not be
  /// reached.
  void wait() const;

 private:
  friend class Coordinator;
  std::shared_ptr<Submission> submission_;
  std::uint64_t number_ = 0;
};

/// The second interface to the allreduce: tensors with names, submitted by any thread of any rank in any order. A
/// thread of its own finds out which of them all ranks have, fuses these into batches and reduces them.
///
/// It promises that all ranks get equal bits, not that two runs do: what is fused with what depends on time.
///
/// A name stands for the same thing on all ranks (kind, operation, shapes, types) and is for use again and again; the
/// first time costs an exchange, later ones a bit. The same name may not be in flight twice on a rank. Tensors belong
/// to the coordinator until their ticket is done; they may lie anywhere in the host's memory, and are copied into the
/// batch and out of it.
///
/// It needs a World of its own: while it is open, communication by any communicator of that World throws LogicError.
/// The World must have been made with WorldOptions::any_thread (or with progress by a thread); if MPI is the caller's,
/// it needs MPI_THREAD_MULTIPLE, or any_thread and MPI_THREAD_SERIALIZED.
class Coordinator {
 public:
  /// Collective. Throws InputError, on all ranks, where MPI may be called by one thread alone.
  explicit Coordinator(Communicator communicator, const CoordinatorOptions& options = {});
  Coordinator(Coordinator&&) noexcept;
  Coordinator& operator=(Coordinator&&) noexcept;
  /// Without `close` before, this rank leaves: what the others have in flight, and what they submit later, fails with
  /// an error that names it. Waits for nobody longer than two seconds.
  ~Coordinator();

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;

  // All of these may be called by any thread; they throw LogicError for a name in flight, InputError for tensors that
  // cannot be sent, and what the coordinator has failed with, if it has.

  // A call that throws for its tensors counts as a call with its name. If the same call did not throw on other ranks,
  // the next call with this name fails on all ranks, so that it does not match their earlier one.

  Ticket allreduce(std::string_view name, const Tensor& tensor, ReduceOp op = ReduceOp::sum);
  /// A group of tensors, that are reduced in the same cycle: all or none.
  Ticket allreduce(std::string_view name, std::span<const Tensor> tensors, ReduceOp op = ReduceOp::sum);
  Ticket broadcast(std::string_view name, const Tensor& tensor, int root = 0);
  /// `all` is everybody's `mine`, by rank; all give as many elements. What of it belongs to ranks that have joined is
  /// zero.
  Ticket allgather(std::string_view name, const Tensor& mine, const Tensor& all);
  /// Done when all ranks have come to it.
  Ticket barrier(std::string_view name);
  /// For bindings: a call with this name has failed on this rank before it reached the coordinator.
  void note_failed(std::string_view name);
  /// This rank has no more data: until all ranks have joined it counts as zeros (in a product as ones, and so on) in
  /// what the others reduce; a mean is still over all ranks. Returns when all have: the rank that was last. To be
  /// called when nothing of this rank's is in flight, or it is waited for.
  int join();
  /// A coordinator of the ranks that give the same colour, 0 or more, ordered by (key, rank), which shares this one's
  /// thread and is to be closed before it. Returns when all ranks have called it with this name.
  [[nodiscard]] Coordinator split(std::string_view name, int color, int key);

  /// Returns when all ranks have called it and all tensors are done. What other ranks still have in flight then fails.
  void close();

  struct Statistics {
    std::uint64_t cycles = 0, busy_cycles = 0;  ///< all; those in which something was reduced
    std::uint64_t announcements = 0;            ///< exchanges of more than bits
    std::uint64_t submissions = 0, bytes = 0, batches = 0;
    double agreeing_seconds = 0, reducing_seconds = 0;  ///< with the waits for other ranks
    std::size_t batch_bytes = 0;                        ///< in force
    double gather_seconds = 0;                          ///< in force
  };
  [[nodiscard]] Statistics statistics() const noexcept;

 private:
  struct Impl;
  explicit Coordinator(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace ronda
