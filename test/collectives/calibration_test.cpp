// What a group measures of its links is the same on all ranks, measured once, and what it was given is not measured.
#include "support/catch.hpp"
#include "support/ranks.hpp"

#include <ronda/collectives/host/transport/transport.hpp>
#include <ronda/collectives/link_costs.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace ronda::calibration_test {
namespace {

/// Without what the tests before have measured: a group that is split off has its parent's, which may be nothing.
Communicator fresh() { return test::world().communicator().split(0, test::world().rank()); }

std::string chosen(Communicator communicator, std::size_t count) {
  std::vector<float> data(count);  // nobody else sees it
  return std::string(
      communicator.plan(AllreduceSpec{{Tensor(std::span(data))}, ReduceOp::sum, {}, "test"})->algorithm());
}

bool same_everywhere(const Communicator& communicator, const std::string& text) {
  const auto all = communicator.gather_texts(text);
  return std::count(all.begin(), all.end(), all[0]) == static_cast<std::ptrdiff_t>(all.size());
}

TEST_CASE("all ranks have the same costs and make the same choice") {
  Communicator communicator = fresh();
  if (communicator.size() == 1) return;
  REQUIRE(communicator.known_link_costs() == nullptr);
  for (const std::size_t count : {std::size_t{300}, std::size_t{20'000}, std::size_t{600'000}})
    CHECK(same_everywhere(communicator, chosen(communicator, count)));
  REQUIRE(communicator.known_link_costs() != nullptr);
  CHECK(same_everywhere(communicator, communicator.known_link_costs()->text()));

  const LinkCosts& costs = communicator.link_costs();
  const Topology& topology = communicator.topology();
  CHECK(costs.node.empty() == (topology.most_ranks_on_a_node == 1));
  CHECK(costs.network.empty() == (topology.nodes == 1));
  CHECK(costs.combine_seconds > 0);
  for (const double seconds : costs.pack_seconds) CHECK(seconds > 0);
  CHECK(LinkCosts::parse(costs.text()) == costs);
}

TEST_CASE("costs that are given are used, and not measured again") {
  Communicator communicator = fresh();
  if (communicator.size() == 1) return;
  const CostCurve fast({{8, 1e-6}, {1 << 20, 2e-6}}), slow({{8, 1}, {1 << 20, 2}}),
      slower_where_long({{8, 1}, {short_message_bytes, 1}, {1 << 20, 8}});
  LinkCosts costs;
  for (MessageCosts* level : {&costs.node, &costs.network}) *level = {slower_where_long, fast};
  communicator.use_link_costs(costs);
  CHECK(chosen(communicator, 100'000) == (communicator.size() == 2 ? "ring" : "direct"));  // whatever is true
  CHECK(*communicator.known_link_costs() == costs);

  for (MessageCosts* level : {&costs.node, &costs.network}) *level = {fast, slow};
  communicator.use_link_costs(costs);
  CHECK(chosen(communicator, 100'000) != "ring");
  CHECK(communicator.known_link_costs()->network == costs.network);
}

TEST_CASE("with the costs that one run came to another chooses the same, in any order") {
  std::vector<std::size_t> counts{300, 20'000, 20'001, 26'000, 200'000, 200'003, 200'000, 300};
  Communicator first = fresh(), second = fresh();
  if (first.size() == 1) return;
  std::vector<std::string> choices, again;
  for (const std::size_t count : counts) choices.push_back(chosen(first, count));
  second.use_link_costs(*first.known_link_costs());
  std::ranges::reverse(counts);
  for (const std::size_t count : counts) again.push_back(chosen(second, count));
  std::ranges::reverse(again);
  CHECK(again == choices);
  CHECK(*second.known_link_costs() == *first.known_link_costs());  // nothing was tried once more
}

TEST_CASE("groups that are split off have their parent's costs, and try nothing, so that each run chooses alike") {
  Communicator communicator = fresh();
  LinkCosts costs;
  costs.combine_seconds = 0.5;
  costs.trials = {{AllreduceAlgorithm::ring, Compression::none, 4, 2}};
  communicator.use_link_costs(costs);
  const Communicator part = communicator.split(communicator.rank() % 2, communicator.rank());
  REQUIRE(part.known_link_costs() != nullptr);
  CHECK(part.known_link_costs()->combine_seconds == 0.5);
  CHECK(part.known_link_costs()->trials.empty());  // those were of other ranks
  const CostCurve curve({{8, 1e-6}, {1 << 20, 1e-3}});
  for (MessageCosts* level : {&costs.node, &costs.network}) *level = {curve, curve};
  communicator.use_link_costs(costs);
  const Communicator again = communicator.split(communicator.rank() % 2, communicator.rank());
  for (const std::size_t count : {300, 20'000, 200'000}) static_cast<void>(chosen(again, count));
  CHECK(again.known_link_costs()->trials.empty());
}

TEST_CASE("ranks that were given different costs are told so, on all ranks") {
  Communicator communicator = fresh();
  if (communicator.size() == 1) return;
  LinkCosts costs;
  costs.combine_seconds = communicator.rank();
  communicator.use_link_costs(costs);
  std::vector<float> data(1000);
  CHECK_THROWS_AS(communicator.plan(AllreduceSpec{{Tensor(std::span(data))}, ReduceOp::sum, {}, "test"}), LogicError);
}

TEST_CASE("in a node's shared memory nothing is measured") {
  Communicator communicator = fresh();
  if (communicator.topology().nodes > 1) return;
  const Buffer memory = communicator.allocate(1 << 20, Memory::node_shared);
  const std::span data(reinterpret_cast<float*>(memory.data()), (1 << 20) / sizeof(float));
  const auto reduction = communicator.plan(AllreduceSpec{{Tensor(data)}, ReduceOp::sum, {}, "test"});
  CHECK(communicator.known_link_costs() == nullptr);
}

TEST_CASE("a collective counts its runs and their time") {
  Communicator communicator = fresh();
  std::vector<float> data(1000);
  const auto reduction =
      communicator.plan(AllreduceSpec{{Tensor(std::span(data))}, ReduceOp::sum, AllreduceAlgorithm::ring, "test"});
  if (communicator.size() == 1) return;
  CHECK(reduction->times().runs == 0);
  CHECK_FALSE(reduction->times().predicted);
  for (int i = 0; i < 3; ++i) reduction->start().wait();
  CHECK(reduction->times().runs == 3);
  CHECK(reduction->times().total > 0);
}

}  // namespace
}  // namespace ronda::calibration_test
