#pragma once
#include <mpi.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ronda::mpi {

/// Throws CommunicationError with MPI's own text where `code` is an error; `call` names what returned it.
void check(int code, const char* call);

/// Name and version of the MPI library: `Open MPI v4.1.4`. May be called before MPI is initialised.
[[nodiscard]] std::string library_name();

/// Whether MPI was finalized, and can no longer be called.
[[nodiscard]] bool is_over() noexcept;
/// Throws LogicError if it was: MPI itself would print a message and end the process.
void require_not_over();

/// MPI's clock, which in a simulator is the simulated one; for differences.
[[nodiscard]] inline double seconds() { return MPI_Wtime(); }

/// Owns an MPI communicator whose errors are returned, not fatal. The destructor frees it, and waits for no rank. A
/// function that returns only when other ranks have called it is collective.
class Communicator {
 public:
  Communicator() = default;
  /// Takes over a communicator that the caller created.
  explicit Communicator(MPI_Comm handle);
  Communicator(Communicator&& other) noexcept { swap(other); }
  Communicator& operator=(Communicator&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Communicator();

  [[nodiscard]] static Communicator duplicate(MPI_Comm original);
  /// Some ranks of this communicator, in the order of the list. Collective over these alone.
  [[nodiscard]] Communicator of(const std::vector<int>& ranks) const;
  /// The ranks that share memory with this one.
  [[nodiscard]] Communicator split_by_node() const;

  [[nodiscard]] MPI_Comm handle() const noexcept { return handle_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  /// Forgets the communicator without freeing it, where MPI can no longer be called.
  void leave_behind() noexcept { handle_ = MPI_COMM_NULL; }

  /// Each rank's `mine`, by rank.
  [[nodiscard]] std::vector<int> allgather(int mine) const;
  [[nodiscard]] std::vector<std::string> allgather_texts(std::string_view mine) const;

 private:
  void swap(Communicator& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(rank_, other.rank_);
    std::swap(size_, other.size_);
  }

  /// The handle, for a call of MPI. Throws as require_not_over does.
  [[nodiscard]] MPI_Comm live() const;

  MPI_Comm handle_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 0;
};

}  // namespace ronda::mpi
