#pragma once
#include <utility>
#include <vector>

#include <ronda/collectives/host/transport/transport.hpp>

namespace ronda {

/// Some ranks of a transport, numbered anew from 0. Messages go through the whole transport, in its order: two subsets
/// that have a pair of ranks in common are to be used one after the other.
class SubTransport final : public Transport {
 public:
  /// @param whole    outlives this object
  /// @param members  ranks of `whole`, the same list on all of them; this rank is one
  SubTransport(Transport& whole, std::vector<int> members) : whole_(whole), members_(std::move(members)) {
    while (member(rank_) != whole_.rank()) ++rank_;
  }

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return static_cast<int>(members_.size()); }
  [[nodiscard]] int global_rank(int rank) const noexcept override { return whole_.global_rank(member(rank)); }
  [[nodiscard]] Request send(int to, std::span<const std::byte> message) override {
    return whole_.send(member(to), message);
  }
  [[nodiscard]] Request receive(int from, std::span<std::byte> message) override {
    return whole_.receive(member(from), message);
  }

  [[nodiscard]] Open open() noexcept override { return whole_.open(); }
  void take_back() noexcept override { whole_.take_back(); }

 private:
  bool test(Handle& /*handle*/) override { return true; }  // requests belong to the whole transport
  void abandon(Handle /*handle*/) noexcept override {}
  [[nodiscard]] int member(int rank) const noexcept { return members_[static_cast<std::size_t>(rank)]; }

  Transport& whole_;
  std::vector<int> members_;
  int rank_ = 0;
};

}  // namespace ronda
