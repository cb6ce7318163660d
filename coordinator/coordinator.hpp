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
  /// Bytes in one fused batch; a power of two from 4 KiB to 1 GiB. If empty, tuned while tensors are reduced, up to 4
  /// MiB on one node and 16 MiB across several.
  std::optional<std::size_t> batch_bytes = {};
  /// Seconds to wait for more tensors before a cycle, from 0 to 1. If empty, tuned.
  std::optional<double> gather_seconds = {};
  /// Seconds after which `on_warning` reports a tensor that only some ranks have submitted, or ranks that wait in
  /// `join` or `close`. Repeated each time the wait has doubled. 0: never.
  double missing_warning = 60;
  /// Seconds after which such a wait fails. 0: never. A rank may compute for any time; a rank that is dead or stopped
  /// is detected by WorldOptions::communication_timeout.
  double missing_limit = 0;
  /// Called by the coordinator's thread on every rank with one line: about late ranks, or about a fallback, such as
  /// missing shared memory. Must not throw or call the coordinator, which waits until it returns.
  std::function<void(const std::string&)> on_warning = {};
  /// Also prints these lines on standard error, on the first rank of the coordinator and of each group split off.
  bool print_warnings = false;
};

/// Throws InputError if an option is invalid, as the constructor of Coordinator does.
void require_sense(const CoordinatorOptions& options);

/// A submission in flight: one tensor or a group of tensors. A small value; copies refer to the same submission.
class Ticket {
 public:
  Ticket() = default;
  Ticket(std::shared_ptr<Submission> submission, std::uint64_t number);
  /// May be called by any thread.
  [[nodiscard]] bool done() const noexcept;
  /// Waits until the tensors hold the result. May be called by any thread, any number of times. Throws LogicError if
  /// the ranks' submissions differ, CommunicationError if some ranks did not submit, left, or could not be reached.
  void wait() const;

 private:
  friend class Coordinator;
  std::shared_ptr<Submission> submission_;
  std::uint64_t number_ = 0;
};

/// The second interface to the allreduce: named tensors, submitted by any thread of any rank in any order. The
/// coordinator's thread finds the tensors that all ranks have submitted, fuses them into batches and reduces the
/// batches.
///
/// All ranks get equal bits, but two runs may differ: the composition of batches depends on timing.
///
/// A name denotes the same collective on all ranks (kind, operation, shapes, types) and can be reused. Its first use
/// costs an exchange, each later one a single bit. A name may be in flight only once per rank. Tensors belong to the
/// coordinator until their ticket is done. They may be anywhere in host memory, and are copied into the batch and back.
///
/// A coordinator needs a World of its own: while it is open, communication by any communicator of that World throws
/// LogicError. The World must have been made with WorldOptions::any_thread (or with a thread for progress). If the
/// caller initialises MPI, it needs MPI_THREAD_MULTIPLE, or any_thread and MPI_THREAD_SERIALIZED.
class Coordinator {
 public:
  /// Collective. Throws InputError, on all ranks, if only one thread may call MPI.
  explicit Coordinator(Communicator communicator, const CoordinatorOptions& options = {});
  Coordinator(Coordinator&&) noexcept;
  Coordinator& operator=(Coordinator&&) noexcept;
  /// Without `close`, this rank leaves: the other ranks' tensors in flight and their later submissions fail with an
  /// error that names it. Waits at most two seconds.
  ~Coordinator();

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;

  // All of these may be called by any thread. They throw LogicError for a name in flight, InputError for invalid
  // tensors, and the coordinator's own error if it has failed.

  // A call that throws because of its tensors still counts as a call with its name. If the same call did not throw on
  // other ranks, the next call with this name fails on all ranks, so that it is not matched with their earlier one.

  Ticket allreduce(std::string_view name, const Tensor& tensor, ReduceOp op = ReduceOp::sum);
  /// Reduces a group of tensors in one cycle: all or none.
  Ticket allreduce(std::string_view name, std::span<const Tensor> tensors, ReduceOp op = ReduceOp::sum);
  Ticket broadcast(std::string_view name, const Tensor& tensor, int root = 0);
  /// Concatenates `mine` of all ranks, by rank, in `all`. All ranks give equally many elements. The parts of joined
  /// ranks are zero.
  Ticket allgather(std::string_view name, const Tensor& mine, const Tensor& all);
  /// Done when all ranks have submitted it.
  Ticket barrier(std::string_view name);
  /// For bindings: records that a call with this name failed on this rank before it reached the coordinator.
  void note_failed(std::string_view name);
  /// Marks this rank as out of data; takes effect once none of its tensors is in flight. Until all ranks have joined,
  /// it contributes neutral elements to the other ranks' reductions (zeros to sums, ones to products); a mean is still
  /// over all ranks. Waits until all ranks have joined, and returns the rank that joined last.
  int join();
  /// Returns a coordinator of the ranks that give the same colour, 0 or more, ordered by (key, rank). It shares this
  /// one's thread and must be closed first. Waits until all ranks have called it with this name.
  [[nodiscard]] Coordinator split(std::string_view name, int color, int key);

  /// Waits until all ranks have called it and all tensors are done. Once one rank has closed, tensors still in flight
  /// on other ranks fail.
  void close();

  struct Statistics {
    std::uint64_t cycles = 0, busy_cycles = 0;  ///< all cycles; cycles with a reduction
    std::uint64_t announcements = 0;  ///< exchanges of names, shapes or requests, beyond the bits of each cycle
    std::uint64_t submissions = 0, bytes = 0, batches = 0;
    double agreeing_seconds = 0, reducing_seconds = 0;  ///< including waits for other ranks
    std::size_t batch_bytes = 0;                        ///< current value
    double gather_seconds = 0;                          ///< current value
  };
  [[nodiscard]] Statistics statistics() const noexcept;

 private:
  struct Impl;
  explicit Coordinator(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace ronda
