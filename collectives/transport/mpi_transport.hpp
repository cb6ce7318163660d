#pragma once
#include <memory>
#include <utility>
#include <vector>

#include <ronda/collectives/transport/mpi.hpp>
#include <ronda/collectives/transport/tags.hpp>
#include <ronda/collectives/transport/transport.hpp>

namespace ronda {

/// Messages over MPI between some ranks of a communicator, which are numbered anew from 0. Used by the engine only.
class MpiTransport final : public Transport {
 public:
  /// Transports between the same ranks share one list of them.
  using Members = std::shared_ptr<const std::vector<int>>;
  /// @param communicator  outlives this object
  /// @param rank          this rank's in `communicator`
  /// @param members       the ranks that take part, the same list on all of them; this rank is one
  /// @param tag           keeps this transport's messages apart from those of others that are alive
  MpiTransport(const mpi::Communicator& communicator, int rank, Members members, Tag tag);

  /// What goes from now on has this tag; nothing is under way.
  void use(Tag tag) noexcept { tag_ = std::move(tag); }

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return static_cast<int>(members_->size()); }
  [[nodiscard]] int global_rank(int rank) const noexcept override { return member(rank); }
  [[nodiscard]] Request send(int to, std::span<const std::byte> message) override;
  [[nodiscard]] Request receive(int from, std::span<std::byte> message) override;

 private:
  bool test(Handle& handle) override;
  void abandon(Handle handle) noexcept override;
  [[nodiscard]] int member(int rank) const noexcept { return (*members_)[static_cast<std::size_t>(rank)]; }

  MPI_Comm communicator_;
  Members members_;
  Tag tag_;
  int rank_ = 0;
};

}  // namespace ronda
