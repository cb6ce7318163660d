#pragma once

namespace ronda {

/// Which ranks of a group keep values (*servers*) and which compute with them (*workers*): the last ranks are the
/// servers. A plain value, which knows nothing of how ranks meet.
class KeyValueRoles {
 public:
  /// Throws InputError where there would be no server or no worker.
  KeyValueRoles(int ranks, int servers);

  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  [[nodiscard]] int servers() const noexcept { return servers_; }
  [[nodiscard]] int workers() const noexcept { return ranks_ - servers_; }
  [[nodiscard]] bool is_server(int rank) const noexcept { return rank >= workers(); }
  /// The rank of server `index`, from 0. Worker i is rank i.
  [[nodiscard]] int rank_of_server(int index) const noexcept { return workers() + index; }

 private:
  int ranks_, servers_;
};

}  // namespace ronda
