#pragma once
#include <vector>

namespace ronda {

/// Which ranks of a group keep values (*servers*) and which compute with them (*workers*). A plain value, which knows
/// nothing of how ranks meet. Servers and workers are also counted by themselves, from 0, in the order of their ranks.
class Roles {
 public:
  /// The last ranks are servers. Throws InputError where there would be no server or no worker.
  Roles(int ranks, int servers);
  /// These ranks are servers. Throws InputError, also for one that is no rank or stands there twice.
  [[nodiscard]] static Roles of_servers(int ranks, std::vector<int> servers);

  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(index_.size()); }
  [[nodiscard]] int servers() const noexcept { return static_cast<int>(servers_.size()); }
  [[nodiscard]] int workers() const noexcept { return static_cast<int>(workers_.size()); }
  [[nodiscard]] bool is_server(int rank) const noexcept { return index_[static_cast<std::size_t>(rank)] < 0; }
  [[nodiscard]] int rank_of_server(int index) const noexcept { return servers_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] int rank_of_worker(int index) const noexcept { return workers_[static_cast<std::size_t>(index)]; }
  /// Which of the servers, or of the workers, this rank is.
  [[nodiscard]] int index_of(int rank) const noexcept {
    const int index = index_[static_cast<std::size_t>(rank)];
    return index < 0 ? -index - 1 : index;
  }
  bool operator==(const Roles&) const = default;

 private:
  struct At {
    std::vector<int> servers;
  };
  Roles(int ranks, At at);

  std::vector<int> servers_, workers_;  ///< ranks, ascending
  std::vector<int> index_;              ///< by rank: of a worker; of server i, -i - 1
};

}  // namespace ronda
