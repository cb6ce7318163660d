#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <ronda/collectives/fabric/fabric.hpp>
#include <ronda/collectives/fabric/mpi/mpi.hpp>

namespace ronda {

/// Messages over MPI between some ranks of a communicator, which are numbered anew from 0. Used by the engine only. It
/// knows what it has under way, because MPI goes on using a message's memory, whoever has lost interest in it, until
/// the request is done or was taken back.
class MpiTransport final : public FabricTransport {
 public:
  /// @param communicator  outlives this object
  /// @param rank          this rank's in `communicator`
  /// @param ranks         of `communicator`, the same list on all of them; this rank is one
  /// @param channel       see Fabric::open; its number is the tag
  MpiTransport(MPI_Comm communicator, int rank, Ranks ranks, FabricChannel channel);
  MpiTransport(const MpiTransport&) = delete;

  void use(FabricChannel channel) noexcept override {
    channel_ = std::move(channel);
    received_ = 0;
    given_up_ = false;
  }
  [[nodiscard]] std::size_t received() const noexcept override { return received_; }

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return static_cast<int>(ranks_->size()); }
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
  [[nodiscard]] int member(int rank) const noexcept { return (*ranks_)[static_cast<std::size_t>(rank)]; }

  [[nodiscard]] int tag() const noexcept { return static_cast<int>(channel_.number()); }

  MPI_Comm communicator_;
  Ranks ranks_;
  FabricChannel channel_;
  int rank_ = 0;
  std::vector<Message> under_way_;  ///< few
  bool given_up_ = false;           ///< nobody waits for what is under way
  std::size_t received_ = 0;
  std::uint64_t sent_bytes_ = 0;
};

}  // namespace ronda
