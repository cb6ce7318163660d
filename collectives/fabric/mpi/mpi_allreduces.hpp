#pragma once
#include <map>
#include <memory>
#include <utility>

#include <ronda/collectives/fabric/fabric.hpp>
#include <ronda/collectives/fabric/mpi/mpi.hpp>
#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/core/buffer.hpp>

namespace ronda {

/// MPI operations that call Ronda's own functions: for types that MPI does not have, and where MPI leaves the result
/// open (NaN, zeros with signs, integers beyond their type). Construct and destroy while no other thread calls MPI.
class MpiOperations {
 public:
  MpiOperations();
  MpiOperations(const MpiOperations&) = delete;
  ~MpiOperations();
  /// Forgets them without freeing them, where MPI can no longer be called.
  void leave_behind() noexcept { ours_.clear(); }

  /// Ours or MPI's own.
  [[nodiscard]] MPI_Op operation(ReduceOp op, DType dtype) const;

 private:
  std::map<std::pair<ReduceOp, DType>, MPI_Op> ours_;
};

/// MPI_Iallreduce, the reference. It works on a copy: an MPI collective cannot be cancelled, so it would still use the
/// operand's memory after this object is destroyed.
class PlainMpi final : public Algorithm, private Traffic {
 public:
  /// @param communicator  for allreduces only
  PlainMpi(MPI_Comm communicator, MPI_Op operation, const Elements& data, const Reduction& reduction)
      : communicator_(communicator),
        operation_(operation),
        data_(data),
        reduction_(reduction),
        copy_(Buffer::host(data.bytes().size())) {}

  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { visit(*this); }
  [[nodiscard]] bool in_order() const noexcept override { return true; }
  [[nodiscard]] std::size_t memory() const noexcept override { return copy_.bytes(); }

 private:
  /// The call under way, for a coroutine to wait for.
  class Call final : public Awaitable {
   public:
    bool arrived() noexcept override;
    void finish() override { mpi::check(code_, "MPI_Iallreduce"); }
    MPI_Request request = MPI_REQUEST_NULL;

   private:
    int code_ = MPI_SUCCESS;
  };
  [[nodiscard]] Open open() noexcept override { return {.sends = !mpi::is_over() && !call_.arrived()}; }
  void take_back() noexcept override {}

  MPI_Comm communicator_;
  MPI_Op operation_;
  Elements data_;
  Reduction reduction_;
  Buffer copy_;
  Call call_;
};

/// The MPI allreduces of a group, over a communicator of their own: MPI takes its collectives in one order on all
/// ranks.
class MpiAllreduces final : public FabricAllreduces {
 public:
  /// @param operations  outlive this object
  MpiAllreduces(mpi::Communicator communicator, const MpiOperations& operations)
      : communicator_(std::move(communicator)), operations_(operations) {}
  ~MpiAllreduces() override;
  [[nodiscard]] std::unique_ptr<Algorithm> make(const Elements& data, const Reduction& reduction) override;

 private:
  mpi::Communicator communicator_;
  const MpiOperations& operations_;
};

}  // namespace ronda
