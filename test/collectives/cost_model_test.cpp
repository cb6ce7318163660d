// The cost model alone: its formulas for links whose costs are known, and the choices that follow.
#include "support/catch.hpp"
#include "support/message_allreduces.hpp"
#include "support/seed.hpp"

#include <ronda/collectives/host/algorithms/ring.hpp>
#include <ronda/collectives/host/wire_format.hpp>
#include <ronda/collectives/tuning/choice.hpp>
#include <ronda/collectives/tuning/cost_model.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>

#include <algorithm>
#include <cmath>
#include <locale>
#include <utility>
#include <vector>

namespace ronda::cost_model_test {
namespace {

using Nodes = std::vector<std::vector<int>>;
using enum AllreduceAlgorithm;
constexpr AllreduceAlgorithm direct = first_other;

/// A message takes `latency` and so many seconds a byte, of which the latency is not seen in a flow.
MessageCosts messages(double latency, double per_byte) {
  const auto line = [&](double at_0) { return CostCurve({{0, at_0}, {1 << 20, at_0 + per_byte * (1 << 20)}}); };
  return {line(latency), line(0)};
}

Nodes nodes_of(int nodes, int ranks_each) {
  Nodes all(static_cast<std::size_t>(nodes));
  int rank = 0;
  for (auto& node : all)
    for (int i = 0; i < ranks_each; ++i) node.push_back(rank++);
  return all;
}

Topology topology_of(const Nodes& nodes) {
  Topology topology;
  topology.nodes = static_cast<int>(nodes.size());
  topology.most_ranks_on_a_node = topology.fewest_ranks_on_a_node = static_cast<int>(nodes[0].size());
  return topology;
}

LinkCosts network(double latency, double per_byte) {
  LinkCosts costs;
  costs.network = messages(latency, per_byte);
  return costs;
}

constexpr double millisecond = 1e-3, gigabit = 8e-9;

TEST_CASE("a curve is straight between its points, and its last line goes on") {
  const CostCurve curve({{8, 1}, {1000, 2}, {2000, 4}});
  CHECK(curve(0) == 1);
  CHECK(curve(8) == 1);
  CHECK(curve(504) == Approx(1.5));
  CHECK(curve(1500) == Approx(3));
  CHECK(curve(3000) == Approx(6));
  CHECK(CostCurve({{8, 3}})(1e6) == 3);
  CHECK(CostCurve({{8, 5}, {1000, 2}, {2000, 4}})(8) == 2);  // something disturbed it
}

TEST_CASE("the formulas, for a latency of 1 ms and 8 ns a byte") {
  const LinkCosts costs = network(millisecond, gigabit);
  const double bytes = 4 << 20, all = gigabit * bytes;
  for (const int n : {2, 4, 8}) {
    const Nodes nodes = nodes_of(n, 1);
    const CostModel model(costs, nodes);
    const double steps = std::log2(n), most = 2.0 * (n - 1) / n;
    INFO(n << " ranks");
    CHECK(*model.seconds(doubling, 4 << 20) == Approx(steps * (millisecond + all)));
    CHECK(*model.seconds(halving, 4 << 20) == Approx(2 * steps * millisecond + most * all));
    CHECK(*model.seconds(ring, 4 << 20) == Approx(most * all));  // so many segments that no latency is seen
    const double chunk = 1000 * gigabit / n;
    CHECK(*model.seconds(ring, 1000) == Approx(2 * (n - 1) * (millisecond + chunk)));
    CHECK(*model.seconds(direct, 1000) == Approx(2 * millisecond + 2 * (n - 1) * chunk));
    CHECK(*model.seconds(direct, 4 << 20) == Approx(2 * millisecond + most * all));
    CHECK_FALSE(model.seconds(mpi, 4 << 20));
    CHECK_FALSE(model.seconds(node, 4 << 20));
    CHECK_FALSE(model.seconds(hierarchical, 4 << 20));  // nobody measured the nodes' memory
  }
}

TEST_CASE("an allreduce in a node's memory takes what was measured there, on one node alone") {
  LinkCosts costs = network(millisecond, gigabit);
  costs.window = CostCurve({{1000, 2e-6}, {3000, 6e-6}});
  const Nodes one = nodes_of(1, 4), two = nodes_of(2, 2);
  const auto seconds = CostModel(costs, one).seconds(node, 2000);
  REQUIRE(seconds);
  CHECK(*seconds == Approx(4e-6));
  CHECK_FALSE(CostModel(costs, two).seconds(node, 2000));
}

TEST_CASE("other numbers of ranks than powers of two exchange all of the data twice more") {
  const LinkCosts costs = network(millisecond, gigabit);
  const double all = millisecond + gigabit * 1e6;
  for (const int n : {3, 5, 6, 7}) {
    const Nodes few = nodes_of(n < 4 ? 2 : 4, 1), more = nodes_of(n, 1);
    for (const auto algorithm : {doubling, halving})
      CHECK(*CostModel(costs, more).seconds(algorithm, 1'000'000) ==
            Approx(*CostModel(costs, few).seconds(algorithm, 1'000'000) + 2 * all));
  }
}

TEST_CASE("combining costs what an algorithm combines") {
  LinkCosts costs = network(0, 0);
  costs.combine_seconds = 1;
  const Nodes nodes = nodes_of(4, 1);
  const CostModel model(costs, nodes);
  CHECK(*model.seconds(doubling, 1000) == Approx(2000));
  CHECK(*model.seconds(halving, 1000) == Approx(750));
  CHECK(*model.seconds(ring, 1000) == Approx(750));
  const Nodes more = nodes_of(5, 1);  // the fifth rank's numbers are added first
  CHECK(*CostModel(costs, more).seconds(doubling, 1000) == Approx(3000));
  CHECK(*CostModel(costs, more).seconds(halving, 1000) == Approx(1750));
}

TEST_CASE("more bytes, more ranks and slower links never take less time") {
  for (const AllreduceRow* row : test::message_allreduces()) {
    if (row->cost == nullptr) continue;
    const AllreduceAlgorithm algorithm = row->algorithm;
    double before = 0;
    for (std::size_t bytes = 8; bytes < std::size_t{1} << 30; bytes *= 3) {
      const Nodes nodes = nodes_of(6, 1);
      const LinkCosts costs = network(millisecond, gigabit), slower = network(2 * millisecond, 2 * gigabit);
      const double now = *CostModel(costs, nodes).seconds(algorithm, bytes);
      CHECK(now >= before);
      CHECK(*CostModel(slower, nodes).seconds(algorithm, bytes) >= now);
      before = now;
    }
    before = 0;
    for (int n = 2; n <= 512; n *= 2) {
      const Nodes nodes = nodes_of(n, 1);
      const LinkCosts costs = network(millisecond, gigabit);
      const double now = *CostModel(costs, nodes).seconds(algorithm, 1 << 20);
      CHECK(now >= before);
      before = now;
    }
  }
}

TEST_CASE("a ring is as fast as its link, or as the messages that may be under way allow") {
  const Nodes nodes = nodes_of(4, 1);
  const double bytes = 64 << 20, segments = std::ceil(bytes / 4 / short_message_bytes), lanes = Ring::most_lanes;
  const LinkCosts near = network(millisecond, gigabit), far = network(50 * millisecond, gigabit);
  CHECK(*CostModel(near, nodes).seconds(ring, 64 << 20) == Approx(1.5 * gigabit * bytes));
  const double message = 50 * millisecond + gigabit * bytes / 4 / segments;
  CHECK(*CostModel(far, nodes).seconds(ring, 64 << 20) == Approx(6 * segments / lanes * message));
}

TEST_CASE("from few bytes to many: doubling, direct, ring") {
  LinkCosts costs = network(millisecond, gigabit);
  costs.combine_seconds = 1e-10;
  for (const int n : {3, 4, 16}) {
    const Nodes nodes = nodes_of(n, 1);
    const CostModel model(costs, nodes);
    const auto choice = [&](std::size_t bytes) {
      return choose_allreduce({automatic, bytes, false}, topology_of(nodes), &model).algorithm;
    };
    CHECK(choice(8) == doubling);
    CHECK(choice(64 << 10) == direct);
    CHECK(choice(64 << 20) == ring);
  }
}

TEST_CASE("where each message takes a processor's time: doubling, halving") {
  LinkCosts costs = network(millisecond, gigabit);
  costs.network.flow = messages(millisecond / 2, gigabit).exchange;
  costs.combine_seconds = 1e-10;
  const Nodes nodes = nodes_of(16, 1);
  const CostModel model(costs, nodes);
  const auto choice = [&](std::size_t bytes) {
    return choose_allreduce({automatic, bytes, false}, topology_of(nodes), &model).algorithm;
  };
  CHECK(choice(8) == doubling);
  CHECK(choice(16 << 10) == doubling);
  CHECK(choice(512 << 10) == halving);
  CHECK(choice(64 << 20) == halving);
  CHECK(choice(std::size_t{2} << 30) == ring);  // beyond what others take
}

TEST_CASE("on nodes of several ranks the network's link is shared") {
  LinkCosts costs = network(millisecond, gigabit);
  costs.node = messages(1e-6, 1e-10);
  costs.crowded_network = messages(millisecond, 4 * gigabit);
  costs.streams = 4;
  costs.window = CostCurve({{0, 1e-6}, {1 << 20, 1e-6 + 1e-10 * (1 << 20)}});
  const Nodes nodes = nodes_of(2, 4);
  const CostModel model(costs, nodes);
  const double bytes = 1 << 20, inside = 1e-6 + 1e-10 * bytes;
  // Two steps stay in the node; in the third all four ranks of a node send at once.
  CHECK(*model.seconds(doubling, 1 << 20) == Approx(2 * inside + millisecond + 4 * gigabit * bytes));
  // Each of four owners has a quarter, of which a ring of two sends a half twice, 128 KiB in three segments; all four
  // are on one link.
  CHECK(*model.seconds(hierarchical, 1 << 20) ==
        Approx(inside + 2 * std::max(gigabit * bytes / 2, millisecond + gigabit * bytes / 6)));
  // One rank of a node sends to the other node at a time.
  CHECK(*model.seconds(ring, 1 << 20) ==
        Approx(14 * std::max(gigabit * bytes / 8, millisecond + gigabit * bytes / 24)));
  CHECK(choose_allreduce({automatic, 1 << 20, true}, topology_of(nodes), &model).algorithm == hierarchical);
  CHECK(choose_allreduce({automatic, 1 << 20, false}, topology_of(nodes), &model).algorithm != hierarchical);
}

TEST_CASE("what was tried counts, for the size that it was tried for") {
  LinkCosts costs = network(millisecond, gigabit);
  const Nodes nodes = nodes_of(4, 1);
  const CostModel model(costs, nodes), formulas(costs, nodes, false);
  const double before = *model.seconds(halving, 100'000), other = *model.seconds(halving, 100'004);
  costs.trials.push_back({halving, Compression::none, 100'000, 1.5});
  CHECK(*model.seconds(halving, 100'000) == Approx(1.5 * before));
  CHECK(*model.seconds(halving, 100'004) == Approx(other));
  CHECK(*formulas.seconds(halving, 100'000) == Approx(before));
  CHECK(model.trial_bytes(100'000) == 65536);
  CHECK(model.trial_bytes(std::size_t{1} << 30) <= 16 << 20);  // longer ones take too long to try
}

TEST_CASE("a size's choice does not depend on which others were tried before") {
  const Nodes nodes = nodes_of(16, 1);
  for (const std::size_t bytes : {std::size_t{20} << 10, std::size_t{512} << 10, std::size_t{64} << 20}) {
    LinkCosts costs = network(millisecond, gigabit);
    costs.combine_seconds = 1e-10;
    const CostModel model(costs, nodes);
    const auto choice = [&] {
      return choose_allreduce({automatic, bytes, false}, topology_of(nodes), &model).algorithm;
    };
    const AllreduceAlgorithm before = choice();
    costs.trials.push_back({before, Compression::none, bytes + 4, 1000});  // of the same trial
    CHECK(model.trial_bytes(bytes + 4) == model.trial_bytes(bytes));
    CHECK(choice() == before);
    costs.trials.push_back({before, Compression::none, bytes, 1000});
    CHECK(choice() != before);
  }
}

TEST_CASE("nothing has to be known where the answer does not depend on it") {
  const Topology one_node = topology_of(nodes_of(1, 4)), many = topology_of(nodes_of(4, 1)),
                 mixed = topology_of(nodes_of(2, 2));
  CHECK_FALSE(depends_on_costs({automatic, 1 << 20, true}, one_node));
  CHECK_FALSE(depends_on_costs({ring, 1 << 20, false}, many));
  CHECK_FALSE(depends_on_costs({automatic, 64, false}, many));
  CHECK(depends_on_costs({automatic, 1 << 20, false}, one_node));
  CHECK(depends_on_costs({automatic, 1 << 20, false}, many));
  CHECK(depends_on_costs({automatic, 64, true}, mixed));
  CHECK(choose_allreduce({automatic, 1 << 20, true}, one_node, nullptr).algorithm == node);
  CHECK(choose_allreduce({automatic, 64, false}, many, nullptr).algorithm == doubling);
}

TEST_CASE("what is sent compressed has fewer bytes, and is packed and unpacked") {
  LinkCosts costs = network(millisecond, gigabit);
  costs.pack_seconds = {1e-9, 2e-9, 3e-9};
  const Nodes nodes = nodes_of(4, 1);
  const CostModel model(costs, nodes);
  const double bytes = 16 << 20;
  const auto share = [](Compression compression) {
    return static_cast<double>(wire_bytes(compression, 512)) / (512 * sizeof(float));
  };
  for (const auto& [wire, packing] : {std::pair(Compression::bf16, 1e-9),
                                      {Compression::fp16, 2e-9},
                                      {Compression::int8, 3e-9},
                                      {Compression::int4, 3e-9},  // as int8
                                      {Compression::two_bit, 3e-9}}) {
    INFO(name_of(wire));
    const double byte = share(wire) * gigabit + packing;
    const double latencies = keeps_lost(wire) ? 2 * millisecond : 0;  // its ring is a direct exchange
    CHECK(*model.seconds(ring, 16 << 20, wire) == Approx(latencies + 1.5 * bytes * byte));
    CHECK(*model.seconds(halving, 16 << 20, wire) == Approx(4 * millisecond + 1.5 * bytes * byte));
    CHECK(*model.seconds(doubling, 16 << 20, wire) == Approx(2 * (millisecond + bytes * byte)));
  }
  // Two latencies, where a ring of four has six.
  CHECK(*model.seconds(ring, 400, Compression::int8) < 2.1 * millisecond);
  CHECK(*model.seconds(ring, 400, Compression::bf16) > 6 * millisecond);
}

TEST_CASE("automatic compression compresses what goes over a network, where that saves a tenth of the time") {
  LinkCosts costs = network(millisecond, gigabit);
  costs.pack_seconds = {1e-10, 1e-10, 1e-10};
  costs.node = messages(1e-6, 1e-10);
  costs.window = CostCurve({{0, 1e-6}, {1 << 20, 1e-6 + 1e-10 * (1 << 20)}});
  const Nodes many = nodes_of(4, 1), mixed = nodes_of(2, 2), one = nodes_of(1, 4);
  const auto choice = [&](const Nodes& nodes, AllreduceTask task) {
    const CostModel model(costs, nodes);
    task.compression = Compression::automatic;
    return choose_allreduce(task, topology_of(nodes), &model);
  };
  const auto compression = [&](const Nodes& nodes, const AllreduceTask& task) {
    return choice(nodes, task).compression;
  };
  CHECK(compression(many, {automatic, 64 << 20, true}) == Compression::bf16);
  CHECK(compression(many, {automatic, 1 << 10, true}) == Compression::none);
  CHECK(compression(many, {automatic, 16 << 10, true}) == Compression::none);  // latency is nearly all
  CHECK(compression(many, {halving, 64 << 20, false}) == Compression::bf16);
  CHECK(compression(mixed, {automatic, 64 << 20, true}) == Compression::bf16);
  CHECK(choice(mixed, {automatic, 64 << 20, true}).algorithm == hierarchical);
  CHECK(compression(one, {automatic, 64 << 20, true}) == Compression::none);
  CHECK(compression(one, {ring, 64 << 20, false}) == Compression::none);

  // A network at half of which packing goes: nothing is gained.
  costs.network = messages(1e-6, 2e-10);
  CHECK(compression(many, {automatic, 64 << 20, true}) == Compression::none);
  costs.pack_seconds = {4e-12, 0, 0};
  CHECK(compression(many, {automatic, 64 << 20, true}) == Compression::bf16);
  costs.combine_seconds = 2e-9;  // what is left to be saved is little of the whole
  CHECK(compression(many, {automatic, 64 << 20, true}) == Compression::none);

  CHECK(depends_on_costs({ring, 1 << 20, false, Compression::automatic}, topology_of(many)));
  CHECK_FALSE(depends_on_costs({ring, 1 << 20, false, Compression::automatic}, topology_of(one)));
  CHECK_FALSE(depends_on_costs({ring, 1 << 20, false, Compression::bf16}, topology_of(many)));
}

TEST_CASE("link costs are kept as a line of text") {
  LinkCosts costs = network(millisecond, gigabit);
  costs.node = messages(1e-6, 1e-10);
  costs.crowded_network = messages(millisecond, 4 * gigabit);
  costs.streams = 4;
  costs.window = CostCurve({{512, 1e-7}});
  costs.combine_seconds = 2.5e-11;
  costs.pack_seconds = {1e-10, 2e-10, 3.5e-10};
  costs.trials = {{halving, Compression::none, 65536, 1.25}, {ring, Compression::bf16, 1 << 20, 0.75}};
  const LinkCosts kept = LinkCosts::parse(costs.text());
  CHECK(LinkCosts::parse(kept.text()) == kept);  // digits are lost only once
  CHECK(kept.trials == costs.trials);
  CHECK(kept.pack_seconds == costs.pack_seconds);
  CHECK(kept.streams == 4);
  CHECK(kept.network.exchange(1e6) == Approx(costs.network.exchange(1e6)).epsilon(1e-4));
  CHECK(kept.text().find_first_of("\t\n") == std::string::npos);

  struct Commas : std::numpunct<char> {
    [[nodiscard]] char do_decimal_point() const override { return ','; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Commas));
  CHECK(kept.text() == costs.text());
  CHECK(LinkCosts::parse(kept.text()) == kept);
  std::locale::global(before);

  const std::string text = kept.text();
  for (const std::string& damaged :
       {std::string(), std::string("links 0"), text.substr(0, text.size() / 2) + "x", text + " network-flow",
        text + " network-flow 8=1,7=2", text + " network-flow 8=-1", text + " what 3", text + " trial horse,none,8,1",
        text + " trial ring,8,1", text + " pack 1,2", text + " pack 1,2,3,4", text + " streams 0",
        LinkCosts().text() + " node-flow 8=1"}) {
    INFO(damaged);
    CHECK_THROWS_AS(LinkCosts::parse(damaged), InputError);
  }
}

TEST_CASE("damaged link costs are refused, or costs that can be asked for") {
  LinkCosts costs = network(millisecond, gigabit);
  costs.node = messages(1e-6, 1e-10);
  costs.crowded_network = messages(millisecond, 4 * gigabit);
  costs.streams = 4;
  costs.window = CostCurve({{512, 1e-7}});
  costs.trials = {{halving, Compression::none, 65536, 1.25}};
  const std::string text = costs.text();
  const Nodes nodes = nodes_of(4, 2);
  const RngKey key(30 * test::seed(), Purpose::test);
  std::uint64_t draw = 0;
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(key.below(bound, draw++)); };
  const std::vector<std::string> words{"1e999",
                                       "-1",
                                       "nan",
                                       "1e300",
                                       "2147483648",
                                       "99999999999999999999",
                                       " ",
                                       ",",
                                       "=",
                                       "0",
                                       "trial ring,none,-5,1",
                                       "node-flow 8=1",
                                       "\xff",
                                       std::string(1, '\0')};
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) {
      const std::size_t at = below(damaged.size());
      switch (below(4)) {
        case 0: damaged[at] = static_cast<char>(damaged[at] ^ (1 << below(8))); break;
        case 1: damaged.insert(at, words[below(words.size())]); break;
        case 2: damaged.erase(at, 1 + below(12)); break;
        default: {  // a word becomes another
          const std::size_t begin = damaged.find(' ', at);
          if (begin != std::string::npos) {
            const std::size_t end = damaged.find_first_of(" ,=", begin + 1);
            damaged.replace(begin + 1, std::min(end, damaged.size()) - begin - 1, words[below(words.size())]);
          }
        }
      }
      if (damaged.empty()) damaged = "x";
    }
    INFO(damaged);
    try {
      const LinkCosts kept = LinkCosts::parse(damaged);
      static_cast<void>(LinkCosts::parse(kept.text()));
      const CostModel model(kept, nodes);
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{4}, std::size_t{1} << 20, std::size_t{1} << 40}) {
        static_cast<void>(model.trial_bytes(bytes));
        for (const AllreduceRow* row : allreduce_rows())
          if (const auto seconds = model.seconds(row->algorithm, bytes)) REQUIRE(*seconds >= 0);
      }
    } catch (const InputError&) {
    }
  }
}

}  // namespace
}  // namespace ronda::cost_model_test
