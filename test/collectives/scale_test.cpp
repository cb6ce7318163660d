// What a rank sends, to how many others, as the ranks become more: all ranks' coroutines in one thread, in turns.
#include "support/catch.hpp"
#include "support/rank_threads.hpp"

#include <ronda/collectives/host/algorithms/allreduce/direct.hpp>
#include <ronda/collectives/host/algorithms/allreduce/doubling.hpp>
#include <ronda/collectives/host/algorithms/allreduce/halving.hpp>
#include <ronda/collectives/host/algorithms/allreduce/ring.hpp>
#include <ronda/collectives/host/algorithms/binomial_tree.hpp>
#include <ronda/collectives/host/algorithms/exchange.hpp>
#include <ronda/collectives/fabric/threads/thread_network.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ronda::scale_test {
namespace {

/// What one rank has sent, and with whom it has a connection.
struct Sent {
  std::size_t messages = 0, bytes = 0;
  std::set<int> peers;
};

/// Counts what goes through another transport.
class CountingTransport final : public Transport {
 public:
  CountingTransport(Transport& counted, Sent& traffic) : counted_(counted), traffic_(traffic) {}
  [[nodiscard]] int rank() const noexcept override { return counted_.rank(); }
  [[nodiscard]] int size() const noexcept override { return counted_.size(); }
  [[nodiscard]] Request send(int to, std::span<const std::byte> message) override {
    ++traffic_.messages;
    traffic_.bytes += message.size();
    traffic_.peers.insert(to);
    return counted_.send(to, message);
  }
  [[nodiscard]] Request receive(int from, std::span<std::byte> message) override {
    traffic_.peers.insert(from);
    return counted_.receive(from, message);
  }

  [[nodiscard]] Open open() noexcept override { return counted_.open(); }
  void take_back() noexcept override { counted_.take_back(); }

 private:
  bool test(Handle&) override { return true; }  // requests are the counted one's
  void abandon(Handle) noexcept override {}

  Transport& counted_;
  Sent& traffic_;
};

using Make = std::function<std::unique_ptr<Algorithm>(std::unique_ptr<Transport>, const Elements&)>;

/// The most that any rank has sent, in one run on ones.
Sent most_sent(int ranks, std::size_t count, const Make& make) {
  ThreadNetwork network(ranks);
  const auto all = static_cast<std::size_t>(ranks);
  std::vector<Sent> traffic(all);
  std::vector<std::vector<float>> data(all, std::vector<float>(count, 1.0F));
  std::vector<std::unique_ptr<Algorithm>> algorithms;
  std::vector<Task> tasks;
  for (std::size_t rank = 0; rank < all; ++rank) {
    auto transport = std::make_unique<CountingTransport>(network.end(static_cast<int>(rank)), traffic[rank]);
    algorithms.push_back(
        make(std::move(transport), {reinterpret_cast<std::byte*>(data[rank].data()), count, DType::float32}));
    tasks.push_back(algorithms.back()->run());
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (Task& task : tasks) moved |= !task.done() && task.advance();
  }
  Sent most;
  for (std::size_t rank = 0; rank < all; ++rank) {
    REQUIRE(tasks[rank].done());
    tasks[rank].result();
    most.messages = std::max(most.messages, traffic[rank].messages);
    most.bytes = std::max(most.bytes, traffic[rank].bytes);
    if (traffic[rank].peers.size() > most.peers.size()) most.peers = traffic[rank].peers;
  }
  return most;
}

std::size_t log2_of(int ranks) { return static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(ranks)) - 1); }

/// Of 8 ranks, 32 and 128: powers of two, so that the figures are those of the formulas.
constexpr int worlds[] = {8, 32, 128};
constexpr std::size_t few = 1024;  // short: what grows with the ranks alone shows

TEST_CASE("a rank of a ring has two neighbours, however many ranks there are") {
  for (const int ranks : worlds) {
    const Sent most = most_sent(ranks, few, [&](auto transport, const Elements& data) {
      return make_ring(std::move(transport), data, {ReduceOp::sum, ranks}, {});
    });
    const auto others = static_cast<std::size_t>(ranks) - 1;
    CHECK(most.messages == 2 * others);
    CHECK(most.bytes == 2 * others * few / (others + 1) * sizeof(float));
    CHECK(most.peers.size() == 2);
  }
}

TEST_CASE("doubling and halving send to log2(n) others") {
  for (const int ranks : worlds) {
    const Sent doubling = most_sent(ranks, few, [&](auto transport, const Elements& data) {
      return std::make_unique<RecursiveDoubling>(std::move(transport), data, Reduction{ReduceOp::sum, ranks});
    });
    CHECK(doubling.messages == log2_of(ranks));
    CHECK(doubling.peers.size() == log2_of(ranks));
    const Sent halving = most_sent(ranks, few, [&](auto transport, const Elements& data) {
      return std::make_unique<RecursiveHalving>(std::move(transport), data, Reduction{ReduceOp::sum, ranks});
    });
    CHECK(halving.messages == 2 * log2_of(ranks));
    CHECK(halving.peers.size() == log2_of(ranks));
    CHECK(halving.bytes < 2 * few * sizeof(float));
  }
}

TEST_CASE("a tree's root sends to log2(n) others") {
  for (const int ranks : worlds) {
    const Sent most = most_sent(ranks, few, [&](auto transport, const Elements& data) {
      return std::make_unique<BinomialTree>(std::move(transport), data, 0, BinomialTree::Direction::broadcast);
    });
    CHECK(most.messages == log2_of(ranks));
    CHECK(most.bytes == log2_of(ranks) * few * sizeof(float));
    CHECK(most.peers.size() == log2_of(ranks));
  }
}

TEST_CASE("direct has as many connections as twice the square root of the ranks") {
  for (const auto& [ranks, compression] : std::vector<std::pair<int, Compression>>{{8, Compression::none},
                                                                                   {8, Compression::int8},
                                                                                   {32, Compression::none},
                                                                                   {72, Compression::int8},
                                                                                   {128, Compression::none},
                                                                                   {128, Compression::int8}}) {
    const auto others = static_cast<std::size_t>(ranks) - 1;
    const Sent most = most_sent(
        ranks, few, [&, ranks = ranks, wire = Wire{compression, Noise(1)}](auto transport, const Elements& data) {
          return make_direct(std::move(transport), data, {ReduceOp::sum, ranks}, wire);
        });
    CHECK(most.messages <= 2 * others);
    if (ranks <= 64) CHECK(most.messages == 2 * others);
    if (ranks > 64) CHECK(static_cast<double>(most.peers.size()) <= 2.2 * std::sqrt(ranks));
    if (ranks > 64) CHECK(most.messages <= 2 * most.peers.size());
  }
}

TEST_CASE("an alltoall sends each rank's part once, and keeps some under way") {
  for (const int ranks : worlds) {
    std::vector<std::vector<std::byte>> incoming(static_cast<std::size_t>(ranks));
    const Sent most = most_sent(ranks, few, [&](auto transport, const Elements& data) {
      auto& mine = incoming[static_cast<std::size_t>(transport->rank())];
      mine.resize(data.bytes().size());
      const std::vector<std::size_t> counts(static_cast<std::size_t>(ranks), few / static_cast<std::size_t>(ranks));
      return std::make_unique<Exchange>(std::move(transport),
                                        messages_of(parts_of(data.bytes(), counts, sizeof(float))),
                                        messages_of(parts_of(mine, counts, sizeof(float))));
    });
    CHECK(most.messages == static_cast<std::size_t>(ranks) - 1);
    CHECK(most.bytes == (static_cast<std::size_t>(ranks) - 1) * (few / static_cast<std::size_t>(ranks)) * 4);
  }
}

}  // namespace
}  // namespace ronda::scale_test
