#pragma once
#include <mpi.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ronda::mpi {

/// Throws CommunicationError with MPI's own text where `code` is an error; `call` names what returned it.
void check(int code, const char* call);

/// Which MPI this is, and of which version: `Open MPI v4.1.4`. May be asked before MPI begins.
[[nodiscard]] std::string library_name();

/// Whether MPI was finalized, and can no longer be called.
[[nodiscard]] bool is_over() noexcept;
/// Throws LogicError if it was: MPI itself would print a message and end the process.
void require_not_over();

/// MPI's clock, which in a simulator is the simulated one; for differences.
[[nodiscard]] inline double seconds() { return MPI_Wtime(); }

/// From a byte count to what one MPI call can take; larger data goes in pieces.
inline constexpr std::size_t largest_message = std::size_t{1} << 30;

/// Gathers for the ranks of a communicator, in place of MPI's calls that wait.
class Gatherer {
 public:
  virtual ~Gatherer() = default;
  /// `all` becomes everybody's `mine`, by rank. Collective.
  /// @param bytes  by rank, of which `mine` has this one's, and `all` the sum; the same on all ranks
  virtual void gather(std::span<const std::byte> mine, std::span<std::byte> all,
                      const std::vector<std::size_t>& bytes) = 0;
};

/// Owns an MPI communicator whose errors are returned, not fatal. Freed by the destructor, which waits for nobody.
/// What returns only when other ranks have come is collective over it: MPI waits in it, or the gatherer does.
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
  [[nodiscard]] Communicator split(int color, int key) const;
  /// The ranks that share memory with this one.
  [[nodiscard]] Communicator split_by_node() const;

  [[nodiscard]] MPI_Comm handle() const noexcept { return handle_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }

  /// From here on all but `split`, `split_by_node` and `duplicate` goes by `gatherer`.
  void gather_by(std::shared_ptr<Gatherer> gatherer) noexcept { gatherer_ = std::move(gatherer); }

  /// Forgets the communicator without freeing it, where MPI can no longer be called.
  void leave_behind() noexcept { handle_ = MPI_COMM_NULL; }

  void barrier() const;
  void broadcast(std::span<std::byte> bytes, int root) const;
  /// Everybody's `mine`, by rank.
  template <class T>
  [[nodiscard]] std::vector<T> allgather(const T& mine) const {
    std::vector<T> all(static_cast<std::size_t>(size()));
    allgather_bytes(&mine, all.data(), sizeof(T));
    return all;
  }
  template <class T>
  [[nodiscard]] std::vector<T> allgather(const std::vector<T>& mine) const {
    std::vector<T> all(mine.size() * static_cast<std::size_t>(size()));
    allgather_bytes(mine.data(), all.data(), sizeof(T) * mine.size());
    return all;
  }
  /// Of each rank what it has for this one. @param mine  one for each rank
  template <class T>
  [[nodiscard]] std::vector<T> alltoall(const std::vector<T>& mine) const {
    std::vector<T> all(mine.size());
    alltoall_bytes(mine.data(), all.data(), sizeof(T));
    return all;
  }
  [[nodiscard]] std::vector<std::string> allgather_texts(std::string_view mine) const;
  /// Adds up, number by number, what the ranks have. By MPI alone, as what follows.
  void add(std::span<std::uint16_t> numbers) const;
  /// Makes 1 every bit that is 1 on any rank.
  void combine_bits(std::span<std::byte> bits) const;
  /// True where `mine` is true on every rank.
  [[nodiscard]] bool all(bool mine) const;

 private:
  void allgather_bytes(const void* mine, void* all, std::size_t bytes) const;
  void alltoall_bytes(const void* mine, void* all, std::size_t bytes) const;
  void swap(Communicator& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(rank_, other.rank_);
    std::swap(size_, other.size_);
    std::swap(gatherer_, other.gatherer_);
  }

  /// The handle, for a call of MPI. Throws as require_not_over does.
  [[nodiscard]] MPI_Comm live() const;

  MPI_Comm handle_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 0;
  std::shared_ptr<Gatherer> gatherer_;  ///< null: MPI
};

}  // namespace ronda::mpi
