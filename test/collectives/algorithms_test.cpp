// The algorithms between threads, one a rank: any number of ranks, and ThreadSanitizer looks on.
#include "support/catch.hpp"
#include "support/message_allreduces.hpp"
#include "support/numbers.hpp"
#include "support/operands.hpp"
#include "support/rank_threads.hpp"
#include "support/sanitizer.hpp"

#include <ronda/collectives/fabric/channel.hpp>
#include <ronda/collectives/host/algorithms/allreduce/hierarchical.hpp>
#include <ronda/collectives/host/algorithms/binomial_tree.hpp>
#include <ronda/collectives/host/algorithms/exchange.hpp>
#include <ronda/collectives/host/algorithms/ring.hpp>
#include <ronda/collectives/host/algorithms/sparse_allreduce.hpp>
#include <ronda/collectives/host/engine/planned_collective.hpp>
#include <ronda/collectives/host/node/one_shot.hpp>
#include <ronda/collectives/host/node/two_shot.hpp>
#include <ronda/collectives/fabric/threads/thread_network.hpp>
#include <ronda/core/error.hpp>

#include <array>
#include <atomic>
#include <concepts>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace ronda::algorithms_test {
namespace {

constexpr int rank_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 15};
const std::size_t large = (std::size_t{1} << (test::sanitized ? 16 : 20)) + 3;
const std::size_t counts[] = {0, 1, 2, 7, 1023, large};
/// Of every type and operation.
const std::size_t some = (std::size_t{1} << (test::sanitized ? 12 : 16)) + 1;

using test::BorrowedTransport;
using test::on_threads;
using test::run_to_end;

std::vector<float> numbers(std::size_t count, int rank) {
  std::vector<float> values(count);
  test::fill_numbers<float>(values, rank);
  return values;
}

Elements elements(std::vector<float>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size(), DType::float32};
}

/// Runs a ring twice, to see that it can be; what each rank has afterwards.
std::vector<std::vector<float>> ring(int ranks, std::size_t count, RingPart part, std::size_t segment_bytes,
                                     const std::function<std::vector<float>(int)>& initial) {
  ThreadNetwork network(ranks);
  std::vector<std::vector<float>> data(static_cast<std::size_t>(ranks));
  on_threads(ranks, [&](int rank) {
    auto& mine = data[static_cast<std::size_t>(rank)];
    mine.resize(count);
    Ring algorithm(std::make_unique<BorrowedTransport>(network.end(rank)), elements(mine), {ReduceOp::sum, ranks}, part,
                   {}, segment_bytes);
    for (int run = 0; run < 2; ++run) {
      const auto values = initial(rank);
      std::copy(values.begin(), values.end(), mine.begin());
      run_to_end(algorithm);
    }
  });
  return data;
}

TEST_CASE("a ring gives every rank the same sum") {
  for (const int ranks : rank_counts)
    for (const std::size_t count : counts)
      for (const std::size_t segment_bytes : {std::size_t{64}, std::size_t{4096}, std::size_t{1} << 20}) {
        if (count == large && (segment_bytes < 4096 || ranks > 4)) continue;  // a minute of nothing but small messages
        INFO(ranks << " ranks, " << count << " elements, segments of " << segment_bytes << " bytes");
        const auto data =
            ring(ranks, count, RingPart::allreduce, segment_bytes, [&](int rank) { return numbers(count, rank); });
        for (const auto& mine : data) CHECK(test::count_wrong<float>(mine, ranks) == 0);
      }
}

/// A table with its touched rows.
struct SparseTable {
  SparseTable(std::size_t rows, std::size_t elements)
      : width(elements), values(rows * elements), list(TouchedRows::length(rows)), touched(list) {}
  /// As a step does: what the last one left is cleared.
  void touch(const std::vector<std::int32_t>& rows, int rank) {
    for (const std::int32_t row : touched.rows())
      std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * width), width, 0.0F);
    touched.clear();
    for (const std::int32_t row : rows) {
      touched.add(row);
      for (std::size_t i = 0; i < width; ++i) values[static_cast<std::size_t>(row) * width + i] += share(row, i, rank);
    }
  }
  static float share(std::int32_t row, std::size_t i, int rank) {
    return static_cast<float>(row + 3 * static_cast<int>(i) + 1) * static_cast<float>(rank + 1);
  }

  std::size_t width;
  std::vector<float> values;
  std::vector<std::int32_t> list;
  TouchedRows touched;
};

using RowsOfRank = std::function<std::vector<std::int32_t>(int rank)>;

std::vector<std::int32_t> rows_from(std::int32_t first, std::int32_t end, std::int32_t stride = 1) {
  std::vector<std::int32_t> rows;
  for (std::int32_t row = first; row < end; row += stride) rows.push_back(row);
  return rows;
}

TEST_CASE("a sparse allreduce gives every rank the sum of the touched rows, and their list") {
  constexpr std::size_t rows = 97;
  const std::vector<std::pair<std::string, RowsOfRank>> kinds{
      {"none", [](int) { return rows_from(0, 0); }},
      {"all the same", [](int) { return rows_from(5, 6); }},
      {"all", [](int) { return rows_from(0, rows); }},
      {"each its own", [](int rank) { return rows_from(rank, rows, 15); }},
      {"some none, with repetitions", [](int rank) {
         auto twice = rows_from(0, rank % 2 == 0 ? 0 : 90, 1 + rank);
         const auto once = twice;
         twice.insert(twice.end(), once.rbegin(), once.rend());
         return twice;
       }}};
  for (const int ranks : rank_counts)
    for (const std::size_t width : {1, 5, 64})
      for (const std::size_t piece_bytes : {std::size_t{8}, std::size_t{300}, short_message_bytes}) {
        if (ranks > 4 && (width != 5 || piece_bytes == 8)) continue;  // small messages alone take long
        ThreadNetwork network(ranks);
        std::vector<std::unique_ptr<SparseTable>> tables;
        for (int rank = 0; rank < ranks; ++rank) tables.push_back(std::make_unique<SparseTable>(rows, width));
        std::vector<std::vector<std::vector<float>>> results(kinds.size());
        std::vector<std::vector<std::vector<std::int32_t>>> lists(kinds.size());
        for (auto& result : results) result.resize(tables.size());
        for (auto& list : lists) list.resize(tables.size());
        on_threads(ranks, [&](int rank) {
          SparseTable& mine = *tables[static_cast<std::size_t>(rank)];
          SparseAllreduce algorithm(std::make_unique<BorrowedTransport>(network.end(rank)), mine.values.data(), width,
                                    mine.touched, piece_bytes);
          for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
            mine.touch(kinds[kind].second(rank), rank);
            run_to_end(algorithm);
            results[kind][static_cast<std::size_t>(rank)] = mine.values;
            lists[kind][static_cast<std::size_t>(rank)].assign(mine.touched.rows().begin(), mine.touched.rows().end());
          }
        });
        for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
          INFO(ranks << " ranks, " << width << " wide, pieces of " << piece_bytes << " bytes, " << kinds[kind].first);
          std::vector<float> sums(rows * width);
          std::set<std::int32_t> touched;
          for (int rank = 0; rank < ranks; ++rank)
            for (const std::int32_t row : kinds[kind].second(rank)) {
              touched.insert(row);
              for (std::size_t i = 0; i < width; ++i)  // whole numbers: exact in any order
                sums[static_cast<std::size_t>(row) * width + i] += SparseTable::share(row, i, rank);
            }
          for (const auto& values : results[kind]) REQUIRE(values == sums);
          for (const auto& list : lists[kind]) REQUIRE(list == lists[kind].front());
          REQUIRE(std::set(lists[kind].front().begin(), lists[kind].front().end()) == touched);
          REQUIRE(lists[kind].front().size() == touched.size());
        }
      }
}

TEST_CASE("the first half of a ring leaves each rank its chunk of the sum") {
  for (const int ranks : rank_counts)
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1023}}) {
      const auto data =
          ring(ranks, count, RingPart::reduce_scatter, 256, [&](int rank) { return numbers(count, rank); });
      for (int rank = 0; rank < ranks; ++rank) {
        const auto& mine = data[static_cast<std::size_t>(rank)];
        const Range chunk = part_of(count, static_cast<std::size_t>(rank), static_cast<std::size_t>(ranks));
        CHECK(test::count_wrong<float>(std::span(mine).subspan(chunk.begin, chunk.size()), ranks, chunk.begin) == 0);
      }
    }
}

TEST_CASE("the second half of a ring gives every rank everybody's chunk") {
  for (const int ranks : rank_counts)
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1023}}) {
      const auto owner_of = [&](std::size_t i) {
        int rank = 0;
        while (i >= part_of(count, static_cast<std::size_t>(rank), static_cast<std::size_t>(ranks)).end) ++rank;
        return rank;
      };
      const auto data = ring(ranks, count, RingPart::allgather, 256, [&](int rank) { return numbers(count, rank); });
      std::vector<float> expected(count);
      for (std::size_t i = 0; i < count; ++i) expected[i] = test::number_of<float>(i, owner_of(i));
      for (const auto& mine : data) CHECK(std::ranges::equal(mine, expected));
    }
}

/// Memory of the ranks of one node, as a group would set it up.
template <class T>
class Node {
 public:
  Node(int ranks, std::size_t count)
      : data_(static_cast<std::size_t>(ranks)), lines_(data_.size() * NodeCopies::lines_a_rank) {
    for (auto& copy : data_) copy.resize(count);
  }
  [[nodiscard]] std::vector<T>& copy(int rank) { return data_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] NodeCopies copies(int rank) {
    NodeCopies copies;
    copies.rank = rank;
    copies.count = data_[0].size();
    copies.dtype = dtype_of<T>;
    for (std::size_t i = 0; i < data_.size(); ++i) {
      copies.data.push_back(reinterpret_cast<std::byte*>(data_[i].data()));
      copies.lines.push_back(&lines_[i * NodeCopies::lines_a_rank]);
    }
    return copies;
  }

 private:
  std::vector<std::vector<T>> data_;
  std::vector<BarrierLine> lines_;
};

/// Each operation several times, on each rank; whatever is wrong.
template <class NodeAlgorithm, class T>
void reduces_on_a_node(std::initializer_list<std::size_t> sizes) {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8})
    for (const std::size_t count : sizes)
      for (const ReduceOp op : test::all_operations) {
        INFO(name_of(op) << " of " << count << " elements on " << ranks << " ranks");
        Node<T> node(ranks, count);
        on_threads(ranks, [&](int rank) {
          NodeAlgorithm algorithm(node.copies(rank), {op, ranks});
          for (int run = 0; run < 3; ++run) {
            test::fill_operands<T>(op, node.copy(rank), rank);
            run_to_end(algorithm);
          }
        });
        for (int rank = 0; rank < ranks; ++rank) CHECK(test::count_wrong<T>(op, node.copy(rank), ranks) == 0);
      }
}

TEMPLATE_LIST_TEST_CASE("two shots in shared memory do every operation", "", test::AllTypes) {
  reduces_on_a_node<TwoShot, TestType>({0, 1, 3, some});
}

TEMPLATE_LIST_TEST_CASE("one shot in shared memory does every operation", "", test::AllTypes) {
  constexpr std::size_t line = 64 / sizeof(TestType);
  reduces_on_a_node<OneShot, TestType>({0, 1, 3, line - 8 / sizeof(TestType), line, 4 * line});
}

/// The ranks of several nodes, whose n-th ranks are joined by a network each.
template <class T>
class Cluster {
 public:
  Cluster(const std::vector<int>& layout, std::size_t count)
      : slices_(*std::min_element(layout.begin(), layout.end())) {
    for (int slice = 0; slice < slices_; ++slice)
      across_.push_back(std::make_unique<ThreadNetwork>(static_cast<int>(layout.size())));
    for (std::size_t node = 0; node < layout.size(); ++node) {
      nodes_.push_back(std::make_unique<Node<T>>(layout[node], count));
      for (int rank = 0; rank < layout[node]; ++rank) places_.emplace_back(static_cast<int>(node), rank);
    }
  }
  [[nodiscard]] int ranks() const { return static_cast<int>(places_.size()); }
  [[nodiscard]] std::vector<T>& copy(int rank) { return node_of(rank).copy(place(rank).second); }
  [[nodiscard]] Hierarchical algorithm(int rank, ReduceOp op) {
    const auto [node, on_node] = place(rank);
    std::unique_ptr<Transport> to_owners;
    if (on_node < slices_)
      to_owners = std::make_unique<BorrowedTransport>(across_[static_cast<std::size_t>(on_node)]->end(node));
    return {node_of(rank).copies(on_node), {op, ranks()}, slices_, std::move(to_owners)};
  }

 private:
  [[nodiscard]] std::pair<int, int> place(int rank) const { return places_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Node<T>& node_of(int rank) { return *nodes_[static_cast<std::size_t>(place(rank).first)]; }

  int slices_;
  std::vector<std::unique_ptr<ThreadNetwork>> across_;  // one for each slice
  std::vector<std::unique_ptr<Node<T>>> nodes_;
  std::vector<std::pair<int, int>> places_;  // node and rank on it, by rank
};

TEMPLATE_LIST_TEST_CASE("nodes of unequal numbers of ranks do every operation", "", test::AllTypes) {
  const std::vector<std::vector<int>> layouts{{1}, {3}, {1, 1}, {2, 2}, {3, 2}, {1, 4}, {2, 3, 2}, {4, 4}};
  for (const auto& layout : layouts)
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{3}, some})
      for (const ReduceOp op : test::all_operations) {
        Cluster<TestType> cluster(layout, count);
        INFO(name_of(op) << " of " << count << " elements on " << cluster.ranks() << " ranks");
        on_threads(cluster.ranks(), [&](int rank) {
          auto algorithm = cluster.algorithm(rank, op);
          for (int run = 0; run < 2; ++run) {
            test::fill_operands<TestType>(op, cluster.copy(rank), rank);
            run_to_end(algorithm);
          }
        });
        for (int rank = 0; rank < cluster.ranks(); ++rank)
          CHECK(test::count_wrong<TestType>(op, cluster.copy(rank), cluster.ranks()) == 0);
      }
}

using MakeAlgorithm =
    std::function<std::unique_ptr<Algorithm>(std::unique_ptr<Transport>, const Elements&, const Reduction&)>;

/// Runs what `make` makes twice, between threads; what each rank has afterwards of its operands.
template <class T>
std::vector<std::vector<T>> run_on_operands(int ranks, std::size_t count, ReduceOp op, const MakeAlgorithm& make) {
  ThreadNetwork network(ranks);
  std::vector<std::vector<T>> data(static_cast<std::size_t>(ranks), std::vector<T>(count));
  on_threads(ranks, [&](int rank) {
    auto& mine = data[static_cast<std::size_t>(rank)];
    const Elements elements{reinterpret_cast<std::byte*>(mine.data()), count, dtype_of<T>};
    const auto algorithm = make(std::make_unique<BorrowedTransport>(network.end(rank)), elements, {op, ranks});
    for (int run = 0; run < 2; ++run) {
      test::fill_operands<T>(op, mine, rank);
      run_to_end(*algorithm);
    }
  });
  return data;
}

TEST_CASE("each allreduce has a name and a number of its own, and is found by both") {
  std::set<AllreduceAlgorithm> numbers;
  Topology two_nodes;
  two_nodes.nodes = two_nodes.ranks_on_node = two_nodes.most_ranks_on_a_node = two_nodes.fewest_ranks_on_a_node = 2;
  for (const AllreduceRow* row : allreduce_rows()) {
    CHECK(numbers.insert(row->algorithm).second);
    CHECK(parse_allreduce(row->name) == row->algorithm);
    CHECK(name_of(row->algorithm) == row->name);
    CHECK(find_row(row->algorithm) == row);
    CHECK(!row->help.empty());
    CHECK(row->make != nullptr);
    if (row->suits == nullptr) continue;
    CHECK(row->cost != nullptr);  // `auto` compares costs
    for (const Compression compression : {Compression::bf16, Compression::int8, Compression::automatic})
      CHECK((row->compresses() || !row->suits({.node_shared = true, .compression = compression}, two_nodes)));
  }
  CHECK(numbers.size() == allreduce_rows().size());
  CHECK(find_row(AllreduceAlgorithm::automatic) == nullptr);
  CHECK(find_row(AllreduceAlgorithm::nccl) == nullptr);
  CHECK(allreduce_names().size() == numbers.size() + 3);
  CHECK(allreduce_names(DeviceKind::cuda) == std::vector<std::string_view>{"auto", "nccl", "staged"});
}

TEMPLATE_LIST_TEST_CASE("every allreduce by messages does every operation, for any number of ranks", "",
                        test::AllTypes) {
  if (test::watched_for_races && !std::same_as<TestType, float>) return;  // messages know no types
  for (const AllreduceRow* row : test::message_allreduces()) {
    const auto make_algorithm = [&](std::unique_ptr<Transport> transport, const Elements& data,
                                    const Reduction& reduction) {
      return test::make(*row, std::move(transport), data, reduction);
    };
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8})
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{3}, some})
        for (const ReduceOp op : test::all_operations) {
          INFO(name_of(op) << " by " << row->name << " of " << count << " elements on " << ranks << " ranks");
          for (const auto& mine : run_on_operands<TestType>(ranks, count, op, make_algorithm))
            CHECK(test::count_wrong<TestType>(op, mine, ranks) == 0);
        }
  }
}

TEST_CASE("a tree takes a root's data to all, and all ranks' to a root") {
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 15})
    for (int root = 0; root < ranks; ++root)
      for (const std::size_t count : {0, 1, 1023}) {
        INFO(count << " elements, root " << root << " of " << ranks);
        const auto along = [&](BinomialTree::Direction direction) {
          return [=](std::unique_ptr<Transport> transport, const Elements& data, const Reduction& reduction) {
            return std::make_unique<BinomialTree>(std::move(transport), data, root, direction, reduction);
          };
        };
        const auto everywhere =
            run_on_operands<double>(ranks, count, ReduceOp::sum, along(BinomialTree::Direction::broadcast));
        std::vector<double> of_root(count);
        test::fill_operands<double>(ReduceOp::sum, of_root, root);
        for (const auto& mine : everywhere) CHECK(mine == of_root);
        const auto reduced =
            run_on_operands<double>(ranks, count, ReduceOp::mean, along(BinomialTree::Direction::reduce));
        CHECK(test::count_wrong<double>(ReduceOp::mean, reduced[static_cast<std::size_t>(root)], ranks) == 0);
      }
}

TEST_CASE("halves of a ring with chunks of any lengths") {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    std::vector<Range> chunks;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::size_t begin = chunks.empty() ? 0 : chunks.back().end;
      chunks.push_back({begin, begin + static_cast<std::size_t>(rank * 37 % 5 * 100)});
    }
    const std::size_t count = chunks.back().end;
    const auto half = [&](RingPart part) {
      return [=](std::unique_ptr<Transport> transport, const Elements& data, const Reduction& reduction) {
        return std::make_unique<Ring>(std::move(transport), data, reduction, part, chunks, 256);
      };
    };
    const auto reduced = run_on_operands<float>(ranks, count, ReduceOp::mean, half(RingPart::reduce_scatter));
    const auto gathered = run_on_operands<float>(ranks, count, ReduceOp::sum, half(RingPart::allgather));
    for (int owner = 0; owner < ranks; ++owner) {
      const Range chunk = chunks[static_cast<std::size_t>(owner)];
      const auto at = [&](const std::vector<float>& values) {
        return std::span(values).subspan(chunk.begin, chunk.size());
      };
      CHECK(test::count_wrong<float>(ReduceOp::mean, at(reduced[static_cast<std::size_t>(owner)]), ranks,
                                     chunk.begin) == 0);
      std::vector<float> of_owner(count);
      test::fill_operands<float>(ReduceOp::sum, of_owner, owner);
      for (const auto& mine : gathered) CHECK(std::ranges::equal(at(mine), at(of_owner)));
    }
  }
}

TEST_CASE("an exchange takes messages of any lengths from everybody to everybody") {
  const auto length = [](int from, int to) { return static_cast<std::size_t>((from * 31 + to * 17) % 7 * 300); };
  const auto content = [](int from, int to) { return static_cast<std::byte>(from * 16 + to); };
  for (const int ranks : {1, 2, 3, 4, 7, 8, 15})
    for (const std::size_t piece_bytes : {std::size_t{64}, short_message_bytes}) {
      ThreadNetwork network(ranks);
      std::atomic<int> wrong = 0;
      on_threads(ranks, [&](int rank) {
        std::vector<std::size_t> to_others, from_others;
        std::vector<std::byte> sent;
        for (int peer = 0; peer < ranks; ++peer) {
          to_others.push_back(length(rank, peer));
          from_others.push_back(length(peer, rank));
          sent.insert(sent.end(), to_others.back(), content(rank, peer));
        }
        std::vector<std::byte> received(std::accumulate(from_others.begin(), from_others.end(), std::size_t{0}));
        const auto outgoing = parts_of(sent, to_others, 1), incoming = parts_of(received, from_others, 1);
        Exchange exchange(std::make_unique<BorrowedTransport>(network.end(rank)), messages_of(outgoing),
                          messages_of(incoming), piece_bytes);
        for (int run = 0; run < 2; ++run) {
          std::ranges::fill(received, std::byte{255});
          run_to_end(exchange);
          for (int peer = 0; peer < ranks; ++peer) {
            const auto part = incoming[static_cast<std::size_t>(peer)];
            if (!std::ranges::all_of(part, [&](std::byte b) { return b == content(peer, rank); })) ++wrong;
          }
        }
      });
      CHECK(wrong == 0);
    }
}

TEST_CASE("a failed message is reported where the ring waits for it, and the ring can be destroyed") {
  ThreadNetwork network(2);
  std::atomic<int> reported{0};
  on_threads(2, [&](int rank) {
    std::vector<float> data(rank == 0 ? 8 : 16);  // ranks that disagree about the length
    Ring algorithm(std::make_unique<BorrowedTransport>(network.end(rank)), elements(data), Reduction{});
    try {
      run_to_end(algorithm);
    } catch (const CommunicationError&) {
      ++reported;
    }
  });
  CHECK(reported == 2);
}

TEST_CASE("channels come round, except those in use on any rank") {
  const auto mine = std::make_shared<FabricChannels>(), other = std::make_shared<FabricChannels>();
  const auto merged = [&] {
    FabricChannels::State state = mine->state();
    const FabricChannels::State others = other->state();
    FabricChannels::State::merge(std::as_writable_bytes(std::span(&state, 1)), std::as_bytes(std::span(&others, 1)));
    return state;
  };
  const auto take = [&](std::size_t count) {
    const FabricChannels::State state = merged();
    auto here = mine->take(state, count), there = other->take(state, count);
    REQUIRE(here.size() == there.size());
    for (std::size_t i = 0; i < here.size(); ++i) REQUIRE(here[i].number() == there[i].number());
    return std::pair(std::move(here), std::move(there));
  };
  std::vector<FabricChannel> kept;  // by collectives that one of the two ranks has destroyed already
  std::set<std::uint32_t> kept_numbers;
  {
    auto [here, there] = take(10);
    kept = {here[5], there[7]};
    kept_numbers = {here[5].number(), there[7].number()};
  }
  CHECK(merged().in_use.count() == 3);  // with the world's own
  std::set<std::uint32_t> seen;
  for (std::size_t taken = 10; taken < FabricChannels::most + 10; taken += 10)
    for (const FabricChannel& channel : take(10).first) seen.insert(channel.number());
  CHECK(seen.size() == FabricChannels::most - 3);
  for (const std::uint32_t number : kept_numbers) CHECK(seen.count(number) == 0);
  CHECK(take(FabricChannels::most).first.size() == FabricChannels::most - 3);
  kept.clear();
  CHECK(merged().in_use.count() == 1);
}

TEST_CASE("a collective whose preparation fails leaves nothing behind") {
  struct Unprepared final : Algorithm {
    Task run() override { co_return; }
    void visit_traffic(const std::function<void(Traffic&)>& /*visit*/) override {}
    void prepare() override { throw ResourceError("no memory"); }
  };
  std::vector<std::unique_ptr<Algorithm>> algorithms;
  algorithms.push_back(std::make_unique<Unprepared>());
  Ledger ledger;
  std::vector<std::unique_ptr<Collective>> made;
  CHECK_THROWS_AS(made.push_back(std::make_unique<PlannedCollective>(nullptr, std::move(algorithms), "none",
                                                                     Description(), ledger, nullptr)),
                  ResourceError);  // AddressSanitizer sees what is lost
}

}  // namespace
}  // namespace ronda::algorithms_test
