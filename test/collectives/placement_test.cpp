// Which ranks of a group form a node, from the roster of the world alone.
#include "support/catch.hpp"

#include <ronda/collectives/members/placement.hpp>

#include <vector>

namespace ronda::placement_test {
namespace {

using Nodes = std::vector<std::vector<int>>;

/// Ranks 0, 2 and 4 share the memory of host a, ranks 1 and 3 that of host b.
Roster world(int self) { return {.self = self, .hosts = {"a", "b", "a", "b", "a"}, .neighbour = {0, 1, 0, 1, 0}}; }

TEST_CASE("a node has the ranks that share memory, and nodes are in the order of their lowest ranks") {
  const Placement placement = Placement::of(world(3), {0, 1, 2, 3, 4}, 0);
  CHECK(placement.ranks_of_node == Nodes{{0, 2, 4}, {1, 3}});
  CHECK(placement.topology.nodes == 2);
  CHECK(placement.topology.node == 1);
  CHECK(placement.topology.ranks_on_node == 2);
  CHECK(placement.topology.rank_on_node == 1);
  CHECK(placement.topology.most_ranks_on_a_node == 3);
  CHECK(placement.topology.fewest_ranks_on_a_node == 2);
  CHECK(placement.topology.hosts[4] == "a");
}

TEST_CASE("a group numbers its ranks in its own order") {
  const Placement placement = Placement::of(world(4), {4, 3, 0}, 0);
  CHECK(placement.ranks_of_node == Nodes{{0, 2}, {1}});
  CHECK(placement.topology.node == 0);
  CHECK(placement.topology.rank_on_node == 0);
  CHECK(placement.topology.hosts[1] == "b");
}

TEST_CASE("ranks_per_node cuts a host into nodes") {
  const Placement placement = Placement::of(world(4), {0, 1, 2, 3, 4}, 2);
  CHECK(placement.ranks_of_node == Nodes{{0, 2}, {1, 3}, {4}});
  CHECK(placement.topology.node == 2);
  CHECK(placement.topology.ranks_on_node == 1);
}

}  // namespace
}  // namespace ronda::placement_test
