#pragma once
#include <vector>

namespace ronda {

/// Divides the ranks of a group into *servers*, which store values, and *workers*, which compute with them. A plain
/// value, independent of communication. Servers and workers each have indices from 0, in the order of their ranks.
class Roles {
 public:
  /// Makes the last ranks servers. Throws InputError if there would be no server or no worker.
  Roles(int ranks, int servers);
  /// Makes these ranks servers. Throws InputError for the same reasons, and for an invalid or repeated rank.
  [[nodiscard]] static Roles of_servers(int ranks, std::vector<int> servers);

  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(index_.size()); }
  [[nodiscard]] int servers() const noexcept { return static_cast<int>(servers_.size()); }
  [[nodiscard]] int workers() const noexcept { return static_cast<int>(workers_.size()); }
  [[nodiscard]] bool is_server(int rank) const noexcept { return index_[static_cast<std::size_t>(rank)] < 0; }
  [[nodiscard]] int rank_of_server(int index) const noexcept { return servers_[static_cast<std::size_t>(index)]; }
  [[nodiscard]] int rank_of_worker(int index) const noexcept { return workers_[static_cast<std::size_t>(index)]; }
  /// Index of this rank among the servers, or among the workers.
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
  std::vector<int> index_;              ///< by rank: worker i has i, server i has -i - 1
};

}  // namespace ronda
