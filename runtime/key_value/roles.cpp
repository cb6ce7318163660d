#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/key_value/roles.hpp>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace ronda {
namespace {

/// The last ones; none where `servers` cannot be.
std::vector<int> last_ranks(int ranks, int servers) {
  const Message given = setting("servers", servers) + " of " + counted(ranks, "rank") + ": ";
  if (servers < 1) throw InputError(given + "values need one server or more");
  if (servers >= ranks)
    throw InputError(given + "no rank is left as a worker; take fewer servers, or start " +
                     std::to_string(servers + 1) + " ranks or more");
  std::vector<int> last(static_cast<std::size_t>(servers));
  std::iota(last.begin(), last.end(), ranks - servers);
  return last;
}

}  // namespace

Roles::Roles(int ranks, int servers) : Roles(ranks, At{last_ranks(ranks, servers)}) {}

Roles Roles::of_servers(int ranks, std::vector<int> servers) { return {ranks, At{std::move(servers)}}; }

Roles::Roles(int ranks, At at) : servers_(std::move(at.servers)), index_(static_cast<std::size_t>(ranks)) {
  std::ranges::sort(servers_);
  if (servers_.empty()) throw InputError("no rank is a server: values need one or more");
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const int rank = servers_[i];
    if (rank < 0 || rank >= ranks)
      throw InputError("rank " + std::to_string(rank) + " cannot be a server: there are " + counted(ranks, "rank"));
    if (i > 0 && rank == servers_[i - 1]) throw InputError("rank " + std::to_string(rank) + " is a server twice");
    index_[static_cast<std::size_t>(rank)] = -static_cast<int>(i) - 1;
  }
  for (int rank = 0; rank < ranks; ++rank)
    if (!is_server(rank)) {
      index_[static_cast<std::size_t>(rank)] = workers();
      workers_.push_back(rank);
    }
  if (workers_.empty())
    throw InputError("all of " + counted(ranks, "rank") + " are servers: no rank is left as a worker");
}

}  // namespace ronda
