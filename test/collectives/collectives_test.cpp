// Everything besides the allreduce, over MPI: who has what afterwards, for even and uneven parts, every type and any
// root.
#include "support/message.hpp"
#include "support/operands.hpp"
#include "support/rank_case.hpp"

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/fabric/channel.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace ronda::collectives_test {
namespace {

/// Short enough for a tree, and not.
constexpr std::size_t sizes[] = {0, 1, 3, (1 << 16) + 1};

template <class T>
Tensor tensor(std::vector<T>& values) {
  return Tensor(std::span(values));
}

template <class T>
std::vector<T> operands(std::size_t count, int rank) {
  std::vector<T> values(count);
  test::fill_operands<T>(ReduceOp::sum, values, rank);
  return values;
}

/// Some ranks have nothing, others much.
std::vector<std::size_t> uneven_counts(int ranks) {
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < ranks; ++rank) counts.push_back(static_cast<std::size_t>(rank * 37 % 5 * 9001));
  return counts;
}

std::size_t begin_of(const std::vector<std::size_t>& counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
}

std::size_t total(const std::vector<std::size_t>& counts) { return begin_of(counts, static_cast<int>(counts.size())); }

RANK_CASE("a sparse allreduce sums the touched rows of all ranks, in the node's memory and by messages") {
  Communicator communicator = test::world().communicator();
  constexpr std::int32_t rows = 1000;
  for (const std::int64_t width : {1, 7, 64})
    for (const auto memory : {Memory::node_shared, Memory::per_rank})
      for (const auto algorithm : {AllreduceAlgorithm::automatic, AllreduceAlgorithm::ring}) {
        const std::size_t length = TouchedRows::length(rows), count = static_cast<std::size_t>(rows * width);
        const Buffer table_memory = communicator.allocate(count * sizeof(float), memory),
                     list_memory = communicator.allocate(length * sizeof(std::int32_t), memory);
        const std::span values(reinterpret_cast<float*>(table_memory.data()), count);
        TouchedRows touched(std::span(reinterpret_cast<std::int32_t*>(list_memory.data()), length));
        const Tensor table({Shape{rows, width}, DType::float32, {}}, values.data());
        const auto sum =
            communicator.plan(SparseAllreduceSpec{.table = table, .touched = &touched, .algorithm = algorithm});
        for (const std::int32_t stride : {1, 3, 2000, 17}) {  // of 2000: ranks have one row, or none
          std::vector<float> expected(count);
          std::vector<std::int32_t> all;
          std::ranges::fill(values, 0.0F);
          touched.clear();
          for (int rank = 0; rank < communicator.size(); ++rank)
            for (std::int32_t row = 600 * rank; row < rows; row += stride) {
              all.push_back(row);
              if (rank == communicator.rank()) touched.add(row);
              for (std::int64_t i = 0; i < width; ++i) {
                const auto at = static_cast<std::size_t>(row * width + i);
                const auto mine = static_cast<float>(row % 100 + i + rank);
                expected[at] += mine;
                if (rank == communicator.rank()) values[at] = mine;
              }
            }
          sum->start().wait();
          CHECK(std::ranges::equal(values, expected));
          std::ranges::sort(all);
          all.erase(std::unique(all.begin(), all.end()), all.end());
          std::vector<std::int32_t> list(touched.rows().begin(), touched.rows().end());
          auto first = list;
          REQUIRE(list.size() == all.size());
          communicator.broadcast(Tensor(std::span(first)));
          CHECK(list == first);
          std::ranges::sort(list);
          CHECK(list == all);
        }
      }
  std::vector<std::int32_t> list(4);
  TouchedRows touched(list);  // of three rows
  std::vector<float> numbers(8);
  const Tensor table({Shape{4, 2}, DType::float32, {}}, numbers.data());
  CHECK_THROWS_AS(communicator.plan(SparseAllreduceSpec{.table = Tensor(std::span(numbers)), .touched = &touched}),
                  LogicError);
  CHECK_THROWS_AS(communicator.plan(SparseAllreduceSpec{.table = table}), LogicError);
  CHECK_THROWS_AS(communicator.plan(SparseAllreduceSpec{.table = table, .touched = &touched}), LogicError);
}

RANK_TYPE_LIST_CASE("broadcast and reduce, from and to every rank", "", test::AllTypes) {
  Communicator communicator = test::world().communicator();
  const int ranks = communicator.size();
  for (const std::size_t count : sizes)
    for (int root = 0; root < ranks; ++root) {
      INFO(count << " elements, root " << root);
      auto data = operands<TestType>(count, communicator.rank());
      communicator.broadcast(tensor(data), root);
      CHECK(data == operands<TestType>(count, root));
      for (const ReduceOp op : test::all_operations) {
        test::fill_operands<TestType>(op, data, communicator.rank());
        communicator.reduce(tensor(data), root, op);
        if (communicator.rank() == root) CHECK(test::count_wrong<TestType>(op, data, ranks) == 0);
      }
    }
}

RANK_TYPE_LIST_CASE("reduce_scatter and allgather, even and uneven", "", test::AllTypes) {
  Communicator communicator = test::world().communicator();
  const int ranks = communicator.size(), rank = communicator.rank();
  std::vector<std::vector<std::size_t>> layouts{uneven_counts(ranks)};
  for (const std::size_t count : sizes) layouts.emplace_back(ranks, count);
  for (const auto& layout : layouts) {
    const std::size_t own = layout[static_cast<std::size_t>(rank)];
    std::vector<TestType> all(total(layout)), mine(own);
    for (const ReduceOp op : test::all_operations) {
      test::fill_operands<TestType>(op, all, rank);
      communicator.reduce_scatter(tensor(all), tensor(mine), op, layout);
      CHECK(test::count_wrong<TestType>(op, mine, ranks, begin_of(layout, rank)) == 0);
    }
    mine = operands<TestType>(own, rank);
    communicator.allgather(tensor(mine), tensor(all), layout);
    for (int owner = 0; owner < ranks; ++owner) {
      const std::size_t count = layout[static_cast<std::size_t>(owner)];
      CHECK(
          std::ranges::equal(std::span(all).subspan(begin_of(layout, owner), count), operands<TestType>(count, owner)));
    }
  }
}

RANK_TYPE_LIST_CASE("gather and scatter, even and uneven, to and from every rank", "", test::AllTypes) {
  Communicator communicator = test::world().communicator();
  const int ranks = communicator.size(), rank = communicator.rank();
  std::vector<std::vector<std::size_t>> layouts{uneven_counts(ranks)};
  for (const std::size_t count : sizes) layouts.emplace_back(ranks, count);
  for (const auto& layout : layouts)
    for (int root = 0; root < ranks; ++root) {
      const std::size_t own = layout[static_cast<std::size_t>(rank)];
      auto mine = operands<TestType>(own, rank);
      std::vector<TestType> all(rank == root ? total(layout) : 0);
      communicator.gather(tensor(mine), tensor(all), root, layout);
      for (int owner = 0; owner < ranks && rank == root; ++owner) {
        const std::size_t count = layout[static_cast<std::size_t>(owner)];
        CHECK(std::ranges::equal(std::span(all).subspan(begin_of(layout, owner), count),
                                 operands<TestType>(count, owner)));
      }
      std::ranges::fill(mine, TestType{});
      communicator.scatter(tensor(all), tensor(mine), root, layout);
      CHECK(mine == operands<TestType>(own, rank));
    }
}

RANK_CASE("who is not the root of a gather or a scatter needs no tensor of all") {
  Communicator communicator = test::world().communicator();
  const int ranks = communicator.size(), rank = communicator.rank(), root = ranks - 1;
  std::vector<float> mine{static_cast<float>(rank)}, all(static_cast<std::size_t>(rank == root ? ranks : 0), -1.0F);
  const Tensor whole = rank == root ? tensor(all) : Tensor();
  communicator.gather(tensor(mine), whole, root);
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == static_cast<float>(i));
  mine[0] = -1;
  communicator.scatter(whole, tensor(mine), root);
  CHECK(mine[0] == static_cast<float>(rank));
}

RANK_TYPE_LIST_CASE("alltoall, even and uneven", "", test::AllTypes) {
  Communicator communicator = test::world().communicator();
  const int ranks = communicator.size(), rank = communicator.rank();
  const auto uneven = [](int from, int to) { return static_cast<std::size_t>((from * 31 + to * 17) % 5 * 1001); };
  for (const std::size_t even :
       {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{(1 << 16) + 1}, SIZE_MAX}) {
    const auto length = [&](int from, int to) { return even == SIZE_MAX ? uneven(from, to) : even; };
    std::vector<std::size_t> sent, received;
    std::vector<TestType> outgoing, expected;
    for (int peer = 0; peer < ranks; ++peer) {
      sent.push_back(length(rank, peer));
      received.push_back(length(peer, rank));
      const auto to = operands<TestType>(sent.back(), rank * 16 + peer);
      const auto from = operands<TestType>(received.back(), peer * 16 + rank);
      outgoing.insert(outgoing.end(), to.begin(), to.end());
      expected.insert(expected.end(), from.begin(), from.end());
    }
    std::vector<TestType> incoming(expected.size());
    communicator.alltoall(tensor(outgoing), tensor(incoming), sent, received);
    CHECK(incoming == expected);
  }
}

RANK_CASE("messages between two ranks keep their order, also while others go around") {
  Communicator communicator = test::world().communicator();
  const int ranks = communicator.size(), rank = communicator.rank();
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  std::vector<std::int32_t> first(1000, rank), second(70'000, -rank), sum(100'000, 1);
  std::vector<std::int32_t> from_left(first.size()), more_from_left(second.size());
  const auto reduction = communicator.plan(AllreduceSpec{{tensor(sum)}, ReduceOp::sum, {}, "test"});
  if (ranks > 1) {
    std::vector<std::unique_ptr<Collective>> messages;
    messages.push_back(communicator.plan(SendSpec{tensor(first), right}));
    messages.push_back(communicator.plan(SendSpec{tensor(second), right}));
    messages.push_back(communicator.plan(ReceiveSpec{tensor(from_left), left}));
    messages.push_back(communicator.plan(ReceiveSpec{tensor(more_from_left), left}));
    std::vector<Event> done;
    done.push_back(reduction->start());
    for (const auto& message : messages) done.push_back(message->start());
    for (const auto& event : done) event.wait();
    CHECK(from_left == std::vector<std::int32_t>(first.size(), left));
    CHECK(more_from_left == std::vector<std::int32_t>(second.size(), -left));
    CHECK(sum == std::vector<std::int32_t>(sum.size(), ranks));
  }
  if (ranks > 1 && rank == 0) communicator.send(tensor(first), ranks - 1);
  if (ranks > 1 && rank == ranks - 1) {
    communicator.receive(tensor(first), 0);
    CHECK(first.back() == 0);
  }
}

RANK_CASE("long messages from one rank to another do not mix, in whatever order they are planned") {
  Communicator communicator = test::world().communicator();
  const int ranks = communicator.size(), rank = communicator.rank();
  if (ranks == 1) return;
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  constexpr std::size_t count = (std::size_t{5} << 20) / sizeof(std::int32_t);
  std::vector<std::vector<std::int32_t>> outgoing(3, std::vector<std::int32_t>(count)), incoming = outgoing;
  for (std::size_t i = 0; i < outgoing.size(); ++i)
    std::iota(outgoing[i].begin(), outgoing[i].end(), static_cast<std::int32_t>(i << 28) + rank);
  std::vector<std::unique_ptr<Collective>> sends, receives;
  for (auto& values : outgoing) sends.push_back(communicator.plan(SendSpec{tensor(values), right}));
  for (std::size_t i = incoming.size(); i-- > 0;)
    receives.insert(receives.begin(), communicator.plan(ReceiveSpec{tensor(incoming[i]), left}));
  for (int repetition = 0; repetition < 2; ++repetition) {
    for (auto& values : incoming) std::ranges::fill(values, -1);
    std::vector<Event> done;
    for (std::size_t i = 0; i < sends.size(); ++i) {
      done.push_back(sends[i]->start());
      done.push_back(receives[i]->start());
    }
    for (const auto& event : done) event.wait();
    for (std::size_t i = 0; i < incoming.size(); ++i) {
      const auto first = static_cast<std::int32_t>(i << 28) + left;
      std::size_t wrong = 0;
      for (std::size_t at = 0; at < count; ++at)
        wrong += incoming[i][at] == first + static_cast<std::int32_t>(at) ? 0 : 1;
      CHECK(wrong == 0);
    }
  }
}

RANK_CASE("a collective that is destroyed half way leaves the others alone") {
  Communicator communicator = test::world().communicator();
  const int ranks = communicator.size(), rank = communicator.rank();
  if (ranks == 1) return;
  std::vector<float> values(200'000), never(10);
  const auto reduction =
      communicator.plan(AllreduceSpec{{tensor(values)}, ReduceOp::sum, AllreduceAlgorithm::ring, "test"});
  for (int repetition = 0; repetition < 20; ++repetition) {
    Communicator own = communicator.split(0, rank);  // its communicator is freed beside the allreduce
    auto waits = own.plan(ReceiveSpec{tensor(never), (rank + 1) % ranks});
    static_cast<void>(waits->start());
    std::ranges::fill(values, 1.0F);
    const Event done = reduction->start();
    waits.reset();
    own = communicator;
    done.wait();
    CHECK(values == std::vector<float>(values.size(), static_cast<float>(ranks)));
  }
}

RANK_CASE("ranks that are told that others use their cores know it, where they wait for one another") {
  const char* shared = std::getenv("RONDA_SHARED_CORES");
  if (shared == nullptr || std::string(shared) != "1") return;
  CHECK((test::world().communicator().topology().oversubscribed || test::world().size() == 1));
}

RANK_CASE("collectives that live for long keep their channels when those of others have come round") {
  Communicator communicator = test::world().communicator();
  const int ranks = communicator.size();
  if ((ranks > 2 && test::world().core_share().least < 1) || test::world().progress() == Progress::thread)
    return;  // so many take long there
  std::vector<std::int32_t> first(1 << 20), second(1 << 20), one(1, 1);
  const auto ring = [&](std::vector<std::int32_t>& values) {
    return communicator.plan(AllreduceSpec{{tensor(values)}, ReduceOp::sum, AllreduceAlgorithm::ring, "test"});
  };
  const auto early = ring(first);
  for (std::size_t i = 0; i < FabricChannels::most; ++i) communicator.allreduce(tensor(one));
  const auto late = ring(second);
  std::ranges::fill(first, 1);
  std::ranges::fill(second, 2);
  const Event early_done = early->start(), late_done = late->start();
  early_done.wait();
  late_done.wait();
  CHECK(first == std::vector<std::int32_t>(first.size(), ranks));
  CHECK(second == std::vector<std::int32_t>(second.size(), 2 * ranks));
}

RANK_CASE("many collectives in flight at once, each started several times") {
  Communicator communicator = test::world().communicator();
  const int ranks = communicator.size(), rank = communicator.rank();
  std::vector<float> to_all(20'000), to_root(20'000), all(static_cast<std::size_t>(ranks) * 500), reduced = all;
  std::vector<std::unique_ptr<Collective>> plans;
  plans.push_back(communicator.plan(BroadcastSpec{tensor(to_all), ranks - 1}));
  plans.push_back(communicator.plan(ReduceSpec{tensor(to_root), 0, ReduceOp::maximum}));
  plans.push_back(communicator.plan(AllgatherSpec{tensor(all)}));
  plans.push_back(communicator.plan(ReduceScatterSpec{tensor(reduced), ReduceOp::mean}));
  for (int repetition = 0; repetition < 3; ++repetition) {
    test::fill_operands<float>(ReduceOp::sum, to_all, rank);
    for (auto* values : {&to_root, &reduced}) test::fill_operands<float>(ReduceOp::sum, *values, rank);
    std::ranges::fill(all, -1.0F);
    std::fill_n(all.begin() + rank * 500, 500, static_cast<float>(rank));
    std::vector<Event> done;
    for (const auto& plan : plans) done.push_back(plan->start());
    for (const auto& event : done) event.wait();
    CHECK(to_all == operands<float>(to_all.size(), ranks - 1));
    if (rank == 0) CHECK(test::count_wrong<float>(ReduceOp::maximum, to_root, ranks) == 0);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t sender = i / 500;
      REQUIRE(all[i] == static_cast<float>(sender));
    }
    const auto begin = static_cast<std::size_t>(rank) * 500;
    CHECK(test::count_wrong<float>(ReduceOp::mean, std::span(reduced).subspan(begin, 500), ranks, begin) == 0);
  }
}

RANK_CASE("what does not fit together is refused, on all ranks") {
  Communicator communicator = test::world().communicator();
  const int ranks = communicator.size();
  std::vector<float> data(static_cast<std::size_t>(ranks) * 10), part(10);
  CHECK_THROWS_AS(communicator.broadcast(tensor(data), ranks), LogicError);
  CHECK_THROWS_AS(communicator.reduce(tensor(data), -1), LogicError);
  CHECK_THROWS_AS(communicator.allgather(tensor(part), tensor(part), std::vector<std::size_t>(3, 1)), LogicError);
  CHECK_THROWS_AS(communicator.plan(ReduceScatterSpec{tensor(data), ReduceOp::sum, {1}}), LogicError);
  if (ranks == 1) return;
  CHECK_THROWS_AS(communicator.broadcast(tensor(data), communicator.rank()), LogicError);  // each from another
  const ReduceOp op = communicator.rank() == 0 ? ReduceOp::minimum : ReduceOp::sum;
  CHECK_THROWS_AS(communicator.reduce(tensor(data), 0, op), LogicError);
}

RANK_CASE("numbers that are no value of an enumeration are refused, on all ranks") {
  Communicator communicator = test::world().communicator();
  std::vector<float> data(10);
  const auto message = [&](const std::function<void(AllreduceSpec&)>& change) {
    AllreduceSpec spec{.tensors = {tensor(data)}, .label = "test"};
    change(spec);
    return test::message_of<InputError>([&] { static_cast<void>(communicator.plan(spec)); });
  };
  test::require_mentions(message([](auto& spec) { spec.algorithm = static_cast<AllreduceAlgorithm>(99); }),
                         {"99", "AllreduceAlgorithm"});
  test::require_mentions(message([](auto& spec) { spec.compression = static_cast<Compression>(77); }),
                         {"77", "Compression"});
  test::require_mentions(message([](auto& spec) { spec.op = static_cast<ReduceOp>(55); }), {"55", "ReduceOp"});
  CHECK_THROWS_AS(communicator.reduce(tensor(data), 0, static_cast<ReduceOp>(55)), InputError);
  const Tensor odd({Shape{10}, static_cast<DType>(44), {}}, reinterpret_cast<std::byte*>(data.data()));
  test::require_mentions(test::message_of<InputError>([&] { communicator.allreduce(odd); }), {"44", "DType"});
}

RANK_CASE("tensors that overlap are refused, also past one that has nothing in it") {
  Communicator communicator = test::world().communicator();
  std::vector<float> data(100);
  const auto part = [&](std::size_t begin, std::size_t count) { return Tensor(std::span(data).subspan(begin, count)); };
  const auto plan = [&](std::vector<Tensor> tensors) {
    return communicator.plan(AllreduceSpec{std::move(tensors), ReduceOp::sum, {}, "parts"});
  };
  CHECK_THROWS_AS(plan({part(0, 51), part(50, 50)}), LogicError);
  CHECK_THROWS_AS(plan({part(60, 20), part(0, 100), part(50, 0)}), LogicError);
  CHECK_NOTHROW(plan({part(50, 50), part(20, 0), part(0, 50)}));
}

RANK_CASE("a part that overlaps the whole elsewhere than in its place is refused") {
  Communicator communicator = test::world().communicator();
  const auto ranks = static_cast<std::size_t>(communicator.size()),
             rank = static_cast<std::size_t>(communicator.rank());
  std::vector<float> data(10 * ranks + 5);
  const std::span<float> numbers(data);
  const Tensor all(numbers.first(10 * ranks)), place(numbers.subspan(10 * rank, 10)),
      beside(numbers.subspan(10 * rank + 5, 10));
  CHECK_NOTHROW(communicator.allgather(place, all));
  CHECK_NOTHROW(communicator.gather(place, all, 0));
  CHECK_THROWS_AS(communicator.allgather(beside, all), LogicError);
  CHECK_THROWS_AS(communicator.scatter(all, beside, 0), LogicError);
}

/// What `call` throws, as an error of all ranks.
std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.agreed());
    return error.what();
  }
  return "nothing";
}

RANK_CASE("a mistake of one rank alone is told to all of them, with its name") {
  Communicator communicator = test::world().communicator();
  const int ranks = communicator.size(), rank = communicator.rank(), last = ranks - 1;
  const bool wrong = rank == last;
  const auto each = static_cast<std::size_t>(ranks);
  std::vector<float> whole(each * 10), part(10), other(wrong ? 9 : 10);
  std::vector<float> sent(each * 10), longer(each * 10 + 1), nothing;
  std::vector<double> doubles(each * 10);
  const Tensor first{std::span(longer).first(each * 10)}, one_later{std::span(longer).last(each * 10)};
  const TensorDesc ten{Shape{10}, DType::float32, {}};
  const Tensor of_other_type = wrong ? tensor(doubles) : tensor(whole);
  const std::vector<std::size_t> counts = wrong ? std::vector<std::size_t>(each + 1, 10) : std::vector<std::size_t>();
  const std::function<void()> calls[] = {
      [&] { communicator.broadcast(tensor(whole), wrong ? -1 : 0); },
      [&] { communicator.reduce(tensor(whole), 0, wrong ? ReduceOp::bitwise_and : ReduceOp::sum); },
      [&] {
        communicator.plan(AllreduceSpec{{tensor(whole)}, wrong ? ReduceOp::bitwise_and : ReduceOp::sum, {}, "x"});
      },
      [&] { communicator.reduce_scatter(tensor(whole), tensor(part), ReduceOp::sum, counts); },
      [&] { communicator.reduce_scatter(tensor(whole), tensor(other)); },
      [&] { communicator.allgather(tensor(part), tensor(whole), counts); },
      [&] { communicator.allgather(tensor(other), tensor(whole)); },
      [&] { communicator.gather(tensor(part), of_other_type, last); },
      [&] { communicator.scatter(of_other_type, tensor(part), last); },
      [&] { communicator.gather(tensor(part), tensor(whole), 0, counts); },
      [&] { communicator.alltoall(of_other_type, tensor(sent)); },
      [&] { communicator.alltoall(tensor(whole), tensor(sent), counts); },
      [&] { communicator.alltoall(wrong ? first : tensor(whole), wrong ? one_later : tensor(sent)); },
      [&] {
        communicator.plan(AllreduceSpec{{tensor(part), wrong ? tensor(part) : tensor(sent)}});
      },
      [&] { communicator.broadcast(wrong ? Tensor(ten, nullptr) : tensor(part)); },
      [&] { communicator.plan(AllreduceSpec{{wrong ? Tensor(ten, nullptr) : tensor(part)}}); },
      [&] { static_cast<void>(communicator.split(wrong ? -1 : 0, rank)); },
  };
  for (const auto& call : calls) {
    INFO("call " << &call - calls);
    const std::string refusal = refusal_of(call);
    INFO(refusal);
    CHECK(refusal != "nothing");
    CHECK((refusal.find("rank " + std::to_string(last) + " on ") == 0) == (ranks > 1));
  }
  std::vector<float> still_works(3, 1.0F);
  communicator.allreduce(tensor(still_works));
  CHECK(still_works[0] == static_cast<float>(ranks));
}

RANK_CASE("ranks that allocate different kinds of memory, or a rank that sends to itself, are refused") {
  Communicator communicator = test::world().communicator();
  std::vector<float> data(4);
  CHECK_THROWS_AS(communicator.send(tensor(data), communicator.rank()), LogicError);
  CHECK_THROWS_AS(communicator.receive(tensor(data), communicator.rank()), LogicError);
  if (communicator.size() == 1) return;
  const Memory memory = communicator.rank() == 0 ? Memory::per_rank : Memory::node_shared;
  CHECK_THROWS_AS(communicator.allocate(4096, memory), LogicError);
}

RANK_CASE("counts whose sum is more than memory can have are refused") {
  Communicator communicator = test::world().communicator();
  if (communicator.size() != 2) return;
  std::vector<float> all(8), other(8);
  const std::vector<std::size_t> counts{~std::size_t{3}, 12};  // 8, where they wrap around
  CHECK_THROWS_AS(communicator.plan(ReduceScatterSpec{tensor(all), ReduceOp::sum, counts}), InputError);
  CHECK_THROWS_AS(communicator.plan(AllgatherSpec{tensor(all), counts}), InputError);
  CHECK_THROWS_AS(communicator.plan(ScatterSpec{tensor(other), tensor(all), 0, counts}), InputError);
  CHECK_THROWS_AS(communicator.alltoall(tensor(all), tensor(other), counts, counts), InputError);
}

RANK_CASE("a short allreduce for once to which ranks come with different counts fails on all of them") {
  Communicator communicator = test::world().communicator();
  if (communicator.size() != 2) return;  // more would still wait for one another
  std::vector<float> data(communicator.rank() == 0 ? 4 : 5);
  CHECK_THROWS_AS(communicator.allreduce(tensor(data)), CommunicationError);
}

RANK_CASE("an alltoall in which one rank expects more than it is sent is refused on all ranks") {
  Communicator communicator = test::world().communicator();
  const auto ranks = static_cast<std::size_t>(communicator.size());
  std::vector<float> outgoing(ranks * 10), incoming(ranks * (communicator.rank() == 0 ? 20 : 10));
  CHECK_THROWS_AS(communicator.alltoall(tensor(outgoing), tensor(incoming)), LogicError);
}

}  // namespace
}  // namespace ronda::collectives_test
