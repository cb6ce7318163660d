#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <ronda/collectives/host/transport/mpi.hpp>
#include <ronda/collectives/host/transport/tags.hpp>
#include <ronda/collectives/host/transport/transport.hpp>

namespace ronda {

/// Messages over MPI between some ranks of a communicator, which are numbered anew from 0. Used by the engine only. It
/// knows what it has under way, because MPI goes on using a message's memory, whoever has lost interest in it, until
/// the request is done or was taken back.
class MpiTransport final : public Transport {
 public:
  /// Transports between the same ranks share one list of them.
  using Members = std::shared_ptr<const std::vector<int>>;
  /// 0, 1, …, `ranks` - 1.
  [[nodiscard]] static Members up_to(int ranks);

  /// @param communicator  outlives this object
  /// @param rank          this rank's in `communicator`
  /// @param members       the ranks that take part, the same list on all of them; this rank is one
  /// @param tag           keeps this transport's messages apart from those of others that are alive
  MpiTransport(MPI_Comm communicator, int rank, Members members, Tag tag);
  MpiTransport(const MpiTransport&) = delete;

  /// What goes from now on has this tag; nothing is under way.
  void use(Tag tag) noexcept {
    tag_ = std::move(tag);
    received_ = 0;
    given_up_ = false;
  }
  /// Messages that came since then.
  [[nodiscard]] std::size_t received() const noexcept { return received_; }

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return static_cast<int>(members_->size()); }
  [[nodiscard]] int global_rank(int rank) const noexcept override { return member(rank); }
  [[nodiscard]] Request send(int to, std::span<const std::byte> message) override;
  [[nodiscard]] Request receive(int from, std::span<std::byte> message) override;
  [[nodiscard]] Open open() noexcept override;
  void take_back() noexcept override;
  [[nodiscard]] std::uint64_t sent_bytes() const noexcept override { return sent_bytes_; }

 private:
  struct Message {
    std::uint64_t id;
    bool receives;
  };
  bool test(Handle& handle) override;
  [[nodiscard]] Open look() const noexcept;
  void abandon(Handle /*handle*/) noexcept override {}
  [[nodiscard]] int member(int rank) const noexcept { return (*members_)[static_cast<std::size_t>(rank)]; }

  MPI_Comm communicator_;
  Members members_;
  Tag tag_;
  int rank_ = 0;
  std::vector<Message> under_way_;  ///< few
  bool given_up_ = false;           ///< nobody waits for what is under way
  std::size_t received_ = 0;
  std::uint64_t sent_bytes_ = 0;
};

}  // namespace ronda
