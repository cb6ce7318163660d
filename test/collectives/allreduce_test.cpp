// Collectives over MPI: every way to do an allreduce gives every rank the same sum, alone and beside others.
#include "support/message.hpp"
#include "support/numbers.hpp"
#include "support/operands.hpp"
#include "support/rank_case.hpp"
#include "support/sanitizer.hpp"

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/host/wire_format.hpp>
#include <ronda/collectives/link_costs.hpp>
#include <ronda/collectives/tuning/choice.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace ronda::allreduce_test {
namespace {

using test::count_wrong;
using test::elements_in;
using test::fill_numbers;

/// Those of many ranks fit into a /dev/shm of 64 MiB together.
std::vector<std::size_t> counts(int ranks) {
  return {0, 1, 7, 1023, (std::size_t{1} << (test::sanitized ? 16 : ranks > 4 ? 18 : 20)) + 3};
}

/// Some messages longer than those that MPI sends at once, of 60 KiB, in four bytes an element.
const std::size_t some = (std::size_t{1} << (test::sanitized ? 14 : 16)) + 1;

/// Those that this layout of ranks and this memory allow.
std::vector<AllreduceAlgorithm> possible_algorithms(const Communicator& communicator, bool node_shared = true) {
  std::vector<AllreduceAlgorithm> possible{AllreduceAlgorithm::automatic};
  for (const AllreduceRow* row : allreduce_rows()) {
    const AllreduceTask task{.wanted = row->algorithm, .node_shared = node_shared};
    if (row->means == AllreduceMeans::mpi && test::ranks_are_threads()) continue;
    const bool alone = !node_shared && row->in_node_memory();  // refused even where each rank is alone on its node
    if (!alone && refusal_of(task, communicator.topology()).empty()) possible.push_back(row->algorithm);
  }
  return possible;
}

RANK_TYPES_CASE("every algorithm gives every rank the same sum", "", float, double) {
  Communicator communicator = test::world().communicator();
  for (const std::size_t count : counts(communicator.size())) {
    const Buffer memory = communicator.allocate(count * sizeof(TestType), Memory::node_shared);
    REQUIRE(communicator.take_notes().empty());
    const auto data = elements_in<TestType>(memory, count);
    for (const AllreduceAlgorithm algorithm : possible_algorithms(communicator)) {
      const auto reduction = communicator.plan(AllreduceSpec{{Tensor(data)}, ReduceOp::sum, algorithm, "test"});
      for (int repetition = 0; repetition < 3; ++repetition) {
        fill_numbers(data, communicator.rank());
        reduction->start().wait();
        INFO(name_of(algorithm) << " of " << count << " elements, repetition " << repetition);
        CHECK(count_wrong<TestType>(data, communicator.size()) == 0);
      }
    }
  }
}

RANK_CASE("the ranks of a node see one another's copies of what they allocate") {
  Communicator communicator = test::world().communicator();
  const Topology& topology = communicator.topology();
  const Buffer memory = communicator.allocate(1 << 16, Memory::node_shared);
  const auto data = elements_in<float>(memory, 1 << 14).subspan(100, 1000);
  data[0] = static_cast<float>(communicator.rank() + 1);
  communicator.barrier();
  const auto copies = communicator.copies_on_node(Tensor(data));
  REQUIRE(copies.size() == static_cast<std::size_t>(topology.most_ranks_on_a_node > 1 ? topology.ranks_on_node : 0));
  for (std::size_t rank = 0; rank < copies.size(); ++rank) {
    const float first = *reinterpret_cast<const float*>(copies[rank]);
    const int distance = static_cast<int>(rank) - topology.rank_on_node;  // ranks of a node follow one another here
    CHECK(first == static_cast<float>(communicator.rank() + distance + 1));
  }
  communicator.barrier();
  std::vector<float> own(10);
  CHECK(communicator.copies_on_node(Tensor(std::span(own))).empty());
}

/// Of the bits 12 to 27 of an address, by which first-level caches of AMD's Zen tell lines apart: see SharedMemory.
std::uintptr_t hash_of_line(const std::byte* address) {
  const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(address) >> 12;
  std::uintptr_t hash = 0;
  for (const auto& [low, high] : {std::pair{0, 15}, {1, 14}, {2, 13}, {3, 8}, {4, 9}, {5, 10}, {6, 11}, {7, 12}})
    hash = 2 * hash + (((page >> low) ^ (page >> high)) & 1);
  return hash;
}

RANK_CASE("the copies of a node do not push one another out of a first-level cache") {
  Communicator communicator = test::world().communicator();
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{3} << 12, std::size_t{407'080}, std::size_t{1} << 20}) {
    const Buffer memory = communicator.allocate(bytes, Memory::node_shared);
    std::set<std::uintptr_t> hashes;
    const auto copies = communicator.copies_on_node(Tensor(elements_in<float>(memory, bytes / sizeof(float))));
    for (const std::byte* copy : copies) hashes.insert(hash_of_line(copy + bytes / 2));
    CHECK(hashes.size() == copies.size());
  }
}

RANK_TYPE_LIST_CASE("every algorithm does every operation on every type", "", test::AllTypes) {
  Communicator communicator = test::world().communicator();
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{3}, some}) {
    const Buffer memory = communicator.allocate(count * sizeof(TestType), Memory::node_shared);
    const auto data = elements_in<TestType>(memory, count);
    for (const AllreduceAlgorithm algorithm : possible_algorithms(communicator))
      for (const ReduceOp op : test::all_operations) {
        test::fill_operands(op, data, communicator.rank());
        communicator.plan(AllreduceSpec{{Tensor(data)}, op, algorithm, "test"})->start().wait();
        INFO(name_of(op) << " by " << name_of(algorithm) << " of " << count << " elements");
        CHECK(test::count_wrong<TestType>(op, data, communicator.size()) == 0);
      }
  }
}

/// Takes the mean of `data`, filled anew by `fill` before each call, by every algorithm and call that can take one;
/// `wrong()` counts the elements that are not the mean.
template <typename T>
void check_means(Communicator& communicator, std::span<T> data, const auto& fill, const auto& wrong) {
  const int last = communicator.size() - 1;
  for (const AllreduceAlgorithm algorithm : possible_algorithms(communicator)) {
    const auto planned = communicator.plan(AllreduceSpec{{Tensor(data)}, ReduceOp::mean, algorithm, "test"});
    for (int turn = 0; turn < 2; ++turn) {
      fill();
      planned->start().wait();
      INFO(name_of(algorithm) << " of " << data.size() << " elements, turn " << turn);
      CHECK(wrong() == 0);
    }
  }
  fill();
  communicator.allreduce(Tensor(data), ReduceOp::mean);
  CHECK(wrong() == 0);
  fill();
  communicator.reduce(Tensor(data), last, ReduceOp::mean);
  if (communicator.rank() == last) CHECK(wrong() == 0);
  std::vector<std::size_t> counts(static_cast<std::size_t>(communicator.size()));
  counts.back() = data.size();
  fill();
  communicator.plan(ReduceScatterSpec{Tensor(data), ReduceOp::mean, counts})->start().wait();
  if (communicator.rank() == last) CHECK(wrong() == 0);
}

RANK_TYPES_CASE("a mean of integers is exact where their sum does not fit the type, by every algorithm", "",
                std::int8_t, std::uint8_t, std::int32_t, std::int64_t) {
  Communicator communicator = test::world().communicator();
  const int rank = communicator.rank(), ranks = communicator.size();
  constexpr TestType most = std::numeric_limits<TestType>::max(), least = std::numeric_limits<TestType>::min();
  const auto mean_of_most = static_cast<TestType>(most - (ranks > 1 ? 1 : 0));  // rank 0 has most - 1, the others most
  const auto mean_of_least = static_cast<TestType>(least + (ranks > 1 && least < 0 ? 1 : 0));  // rounded towards zero
  for (const std::size_t count : {std::size_t{2}, some}) {
    const Buffer memory = communicator.allocate(count * sizeof(TestType), Memory::node_shared);
    const auto data = elements_in<TestType>(memory, count);
    const auto fill = [&] {
      for (std::size_t i = 0; i < count; ++i)
        data[i] = static_cast<TestType>(i % 2 == 0 ? most - (rank == 0 && ranks > 1 ? 1 : 0)
                                                   : least + (rank == 0 && ranks > 1 ? 1 : 0));
    };
    const auto wrong = [&] {
      std::size_t off = 0;
      for (std::size_t i = 0; i < count; ++i) off += data[i] == (i % 2 == 0 ? mean_of_most : mean_of_least) ? 0 : 1;
      return off;
    };
    check_means(communicator, data, fill, wrong);
  }
}

RANK_CASE("a mean of float16 is rounded once, and finite where its sum is beyond float16, by every algorithm") {
  Communicator communicator = test::world().communicator();
  const int rank = communicator.rank(), ranks = communicator.size();
  const auto operand = [](std::size_t i, int of_rank) {
    switch (i % 4) {
      case 0: return to_half<Float16>(40000);
      case 1: return to_half<Float16>(of_rank == 0 ? -65504 : -65472);
      case 2: return to_half<Float16>(of_rank == 0 ? 2048 : 1);  // 2048 + 1 is no float16
      default: return to_half<Float16>(0x1p-24F * static_cast<float>(1 + of_rank));
    }
  };
  for (const std::size_t count : {std::size_t{4}, some}) {
    const Buffer memory = communicator.allocate(count * sizeof(Float16), Memory::node_shared);
    const auto data = elements_in<Float16>(memory, count);
    const auto fill = [&] {
      for (std::size_t i = 0; i < count; ++i) data[i] = operand(i, rank);
    };
    const auto wrong = [&] {
      std::size_t off = 0;
      for (std::size_t i = 0; i < count; ++i) {
        float sum = 0;
        for (int other = 0; other < ranks; ++other) sum += to_float(operand(i, other));
        off += data[i].bits == to_half<Float16>(sum / static_cast<float>(ranks)).bits ? 0 : 1;
      }
      return off;
    };
    check_means(communicator, data, fill, wrong);
  }
  std::vector<Float16> numbers(some);
  if (ranks > 1)
    test::require_mentions(test::message_of<InputError>([&] {
                             communicator.plan(AllreduceSpec{.tensors = {Tensor(std::span(numbers))},
                                                             .op = ReduceOp::mean,
                                                             .algorithm = AllreduceAlgorithm::ring,
                                                             .label = "test",
                                                             .compression = Compression::bf16});
                           }),
                           {"float32 alone, not float16"});
}

RANK_TYPES_CASE("sums of small integers wrap around alike by every algorithm", "", std::int8_t, std::uint8_t) {
  Communicator communicator = test::world().communicator();
  const Buffer memory = communicator.allocate(some, Memory::node_shared);
  const auto data = elements_in<TestType>(memory, some);
  for (const AllreduceAlgorithm algorithm : possible_algorithms(communicator)) {
    std::ranges::fill(data, TestType{100});
    communicator.plan(AllreduceSpec{{Tensor(data)}, ReduceOp::sum, algorithm, "test"})->start().wait();
    INFO(name_of(algorithm));
    CHECK(std::ranges::count(data, static_cast<TestType>(100 * communicator.size())) == std::ssize(data));
  }
}

// MPI's own makes no such promise.
RANK_TYPES_CASE("every algorithm of ours gives all ranks the same NaN", "", float, double, Float16, BFloat16) {
  Communicator communicator = test::world().communicator();
  const int rank = communicator.rank(), last = communicator.size() - 1;
  constexpr std::size_t count = 33;
  const Buffer memory = communicator.allocate(count * sizeof(TestType), Memory::node_shared);
  const auto data = elements_in<TestType>(memory, count);
  for (const AllreduceAlgorithm algorithm : possible_algorithms(communicator)) {
    if (algorithm == AllreduceAlgorithm::mpi) continue;
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::mean, ReduceOp::product, ReduceOp::minimum}) {
      const float nan = std::numeric_limits<float>::quiet_NaN();
      std::ranges::fill(data, test::from_float<TestType>(rank == 0 ? nan : rank == last ? -nan : 1.0F));
      communicator.plan(AllreduceSpec{{Tensor(data)}, op, algorithm, "test"})->start().wait();
      INFO(name_of(op) << " by " << name_of(algorithm));
      CHECK(std::ranges::all_of(data, [](TestType number) { return std::isnan(test::as_double(number)); }));
      const auto bytes = std::as_bytes(data);
      const std::string_view mine(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      CHECK(communicator.gather_texts(mine) ==
            std::vector(static_cast<std::size_t>(communicator.size()), communicator.broadcast_text(mine)));
    }
  }
}

RANK_TYPES_CASE("every algorithm keeps NaN in minimum and maximum, and tells zeros apart", "", float, double, Float16,
                BFloat16) {
  Communicator communicator = test::world().communicator();
  const int rank = communicator.rank(), last = communicator.size() - 1;
  const Buffer memory = communicator.allocate(3 * sizeof(TestType), Memory::node_shared);
  const auto data = elements_in<TestType>(memory, 3);
  for (const AllreduceAlgorithm algorithm : possible_algorithms(communicator))
    for (const ReduceOp op : {ReduceOp::minimum, ReduceOp::maximum}) {
      const float nan = std::numeric_limits<float>::quiet_NaN();
      const float zero = op == ReduceOp::minimum ? 0.0F : -0.0F;  // all but the last rank's, which is the result
      data[0] = test::from_float<TestType>(rank == 0 ? nan : 1.0F);
      data[1] = test::from_float<TestType>(rank == last ? nan : 1.0F);
      data[2] = test::from_float<TestType>(rank == last ? -zero : zero);
      communicator.plan(AllreduceSpec{{Tensor(data)}, op, algorithm, "test"})->start().wait();
      INFO(name_of(op) << " by " << name_of(algorithm));
      CHECK(std::isnan(test::as_double(data[0])));
      CHECK(std::isnan(test::as_double(data[1])));
      CHECK(test::as_double(data[2]) == 0);
      CHECK(std::signbit(test::as_double(data[2])) == (op == ReduceOp::minimum));
    }
}

constexpr Compression wire_compressions[] = {Compression::bf16, Compression::fp16, Compression::int8, Compression::int4,
                                             Compression::two_bit};

RANK_CASE("compressed by any algorithm, all ranks get the same bits, and what is exact stays so") {
  Communicator communicator = test::world().communicator();
  const int ranks = communicator.size();
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{3}, some}) {
    const Buffer memory = communicator.allocate(count * sizeof(float), Memory::node_shared);
    const auto data = elements_in<float>(memory, count);
    const Buffer exact_memory = communicator.allocate(8 * sizeof(double), Memory::node_shared);
    const auto exact = elements_in<double>(exact_memory, 8);
    for (const AllreduceAlgorithm algorithm : possible_algorithms(communicator))
      for (const Compression compression : wire_compressions) {
        if (algorithm == AllreduceAlgorithm::mpi) continue;
        INFO(name_of(compression) << " by " << name_of(algorithm) << " of " << count << " elements");
        const auto reduction = communicator.plan(AllreduceSpec{.tensors = {Tensor(data)},
                                                               .algorithm = algorithm,
                                                               .label = "test",
                                                               .compression = compression,
                                                               .exact = {Tensor(exact)}});
        for (int run = 0; run < 2; ++run) {
          fill_numbers(data, communicator.rank());
          std::ranges::fill(exact, 1e10 + 0.125 * communicator.rank());
          reduction->start().wait();
          std::vector<float> of_root(data.begin(), data.end());
          communicator.broadcast(Tensor(std::span(of_root)));
          CHECK(std::ranges::equal(of_root, data));
          // Numbers are at most 100 and a sum 100 ranks: so much for every time that one is rounded, which is twice for
          // each rank, or in a ring and in pairs no more often than that. Error feedback carries the last run's loss,
          // too.
          const double part = keeps_lost(compression) ? 2 * largest_loss(compression) : 1.0 / 256;
          const double off = 2.0 * ranks * 100 * ranks * part;
          const double limit = reduction->compression() == Compression::none ? 0 : off;
          CHECK(test::count_further_than<float>(limit, data, ranks) == 0);
          CHECK(std::ranges::count(exact, 1e10 * ranks + 0.125 * (ranks * (ranks - 1) / 2)) == std::ssize(exact));
        }
        if (ranks == 1 || count == 0) continue;
        const bool in_memory = communicator.topology().nodes == 1 &&
                               (reduction->algorithm() == "node" || reduction->algorithm() == "hierarchical");
        CHECK(reduction->compression() == (in_memory ? Compression::none : compression));
        if (in_memory) CHECK(reduction->memory() == 0);
      }
  }
}

/// Of a network that is slow beside what packing costs. Allreduces of `bytes` count as tried: they take what the
/// formulas say, whatever else this machine does meanwhile.
LinkCosts slow_network(std::size_t bytes) {
  LinkCosts costs;
  const CostCurve fast({{0, 1e-6}, {1 << 20, 1e-4}}), slow({{0, 1e-6}, {1 << 20, 1e-2}});
  costs.node = {fast, fast};
  costs.network = costs.crowded_network = {slow, slow};
  costs.streams = 2;
  costs.window = fast;
  costs.pack_seconds = {1e-10, 1e-10, 1e-10};
  for (const AllreduceRow* row : allreduce_rows())
    for (const Compression compression : {Compression::none, Compression::bf16})
      costs.trials.push_back({.algorithm = row->algorithm, .compression = compression, .bytes = bytes});
  return costs;
}

RANK_CASE("compression is left alone where it cannot pay, and refused where it cannot be") {
  Communicator communicator = test::world().communicator().split(0, test::world().communicator().rank());
  const std::size_t count = std::size_t{1} << 20;
  communicator.use_link_costs(slow_network(count * sizeof(float)));
  const Buffer memory = communicator.allocate(count * sizeof(float), Memory::node_shared);
  const auto plan = [&](const Tensor& tensor, Compression compression, AllreduceAlgorithm algorithm = {},
                        ReduceOp op = ReduceOp::sum) {
    return communicator
        .plan(AllreduceSpec{
            .tensors = {tensor}, .op = op, .algorithm = algorithm, .label = "test", .compression = compression})
        ->compression();
  };
  const Tensor floats(elements_in<float>(memory, count)), few(elements_in<float>(memory, 10)),
      doubles(elements_in<double>(memory, 100));
  const bool across = communicator.topology().nodes > 1;
  CHECK(plan(floats, Compression::automatic) == (across ? Compression::bf16 : Compression::none));
  CHECK(plan(few, Compression::automatic) == Compression::none);
  CHECK(plan(doubles, Compression::automatic) == Compression::none);
  if (test::ranks_are_threads())
    CHECK_THROWS_AS(plan(floats, Compression::none, AllreduceAlgorithm::mpi), InputError);
  else
    CHECK(plan(floats, Compression::automatic, AllreduceAlgorithm::mpi) == Compression::none);
  for (const Compression compression : wire_compressions) {
    CHECK_THROWS_AS(plan(doubles, compression), InputError);
    CHECK_THROWS_AS(plan(floats, compression, {}, ReduceOp::maximum), InputError);
    CHECK_THROWS_AS(plan(floats, compression, AllreduceAlgorithm::mpi), InputError);
  }
}

RANK_TYPES_CASE("every algorithm finds the bits that all ranks have", "", std::int8_t, std::uint8_t, std::int32_t,
                std::int64_t) {
  Communicator communicator = test::world().communicator();
  for (const std::size_t count : {std::size_t{3}, std::size_t{1} << 16}) {
    const Buffer memory = communicator.allocate(count * sizeof(TestType), Memory::node_shared);
    const auto data = elements_in<TestType>(memory, count);
    for (const AllreduceAlgorithm algorithm : possible_algorithms(communicator)) {
      test::fill_operands(ReduceOp::bitwise_and, data, communicator.rank());
      communicator.allreduce(Tensor(data), ReduceOp::bitwise_and, algorithm);
      INFO(name_of(algorithm) << " of " << count << " elements");
      CHECK(test::count_wrong<TestType>(ReduceOp::bitwise_and, data, communicator.size()) == 0);
    }
  }
  std::vector<float> numbers(3);
  CHECK_THROWS_AS(communicator.plan(AllreduceSpec{
                      {Tensor(std::span(numbers))}, ReduceOp::bitwise_and, AllreduceAlgorithm::automatic, "test"}),
                  LogicError);
}

RANK_CASE("sums that round are the same bits on all ranks and in all runs") {
  Communicator communicator = test::world().communicator();
  constexpr std::size_t count = 10'007;
  const Buffer memory = communicator.allocate(count * sizeof(float), Memory::node_shared);
  const auto data = elements_in<float>(memory, count);
  for (const AllreduceAlgorithm algorithm : possible_algorithms(communicator)) {
    const auto reduction = communicator.plan(AllreduceSpec{{Tensor(data)}, ReduceOp::sum, algorithm, "test"});
    std::vector<float> first;
    for (int run = 0; run < 3; ++run) {
      for (std::size_t i = 0; i < count; ++i)
        data[i] = 0.1F * static_cast<float>(i) + 1.0F / static_cast<float>(communicator.rank() + 3);
      reduction->start().wait();
      if (run == 0) first.assign(data.begin(), data.end());
      CHECK(std::equal(first.begin(), first.end(), data.begin()));
    }
    std::vector<float> of_root = first;
    communicator.broadcast(Tensor(std::span(of_root)));
    INFO(name_of(algorithm));
    CHECK(of_root == first);
  }
}

RANK_CASE("several collectives in flight do not mix, whatever they are done by") {
  Communicator communicator = test::world().communicator();
  constexpr std::size_t count = 30'011;
  struct Flight {
    Buffer memory;
    std::unique_ptr<Collective> reduction;
    Event done;
  };
  std::vector<Flight> flights;
  for (int copy = 0; copy < 2; ++copy)
    for (const AllreduceAlgorithm algorithm : possible_algorithms(communicator)) {
      Buffer memory = communicator.allocate(count * sizeof(float), Memory::node_shared);
      const auto data = elements_in<float>(memory, count);
      flights.push_back(
          {std::move(memory), communicator.plan(AllreduceSpec{{Tensor(data)}, ReduceOp::sum, algorithm, "test"}), {}});
    }
  for (int repetition = 0; repetition < 5; ++repetition) {
    for (auto& flight : flights) {
      fill_numbers(elements_in<float>(flight.memory, count), communicator.rank());
      flight.done = flight.reduction->start();
    }
    if (repetition == 3) communicator.barrier();  // a blocking collective lets the others come to their end first
    for (auto flight = flights.rbegin(); flight != flights.rend(); ++flight) flight->done.wait();
    for (const auto& flight : flights)
      CHECK(count_wrong<float>(elements_in<float>(flight.memory, count), communicator.size()) == 0);
  }
}

RANK_CASE("one collective reduces several tensors of several types") {
  Communicator communicator = test::world().communicator();
  const Buffer a = communicator.allocate(1000 * sizeof(float), Memory::node_shared);
  const Buffer b = communicator.allocate(8 * sizeof(double), Memory::node_shared);
  const Buffer c = communicator.allocate(500'000 * sizeof(float), Memory::per_rank);
  const auto floats = elements_in<float>(a, 1000);
  const auto doubles = elements_in<double>(b, 8);
  const auto many = elements_in<float>(c, 500'000);
  const auto reduction =
      communicator.plan(AllreduceSpec{{Tensor(floats), Tensor(doubles), Tensor(many)}, ReduceOp::sum, {}, "test"});
  for (int repetition = 0; repetition < 3; ++repetition) {
    fill_numbers(floats, communicator.rank());
    fill_numbers(doubles, communicator.rank());
    fill_numbers(many, communicator.rank());
    const Event done = reduction->start();
    while (!done.ready()) {
    }
    CHECK(count_wrong<float>(floats, communicator.size()) == 0);
    CHECK(count_wrong<double>(doubles, communicator.size()) == 0);
    CHECK(count_wrong<float>(many, communicator.size()) == 0);
  }
}

RANK_CASE("an allreduce for once needs no plan, no shared memory, and takes any count") {
  Communicator communicator = test::world().communicator();
  for (const std::size_t count : counts(communicator.size())) {
    std::vector<double> data(count);
    for (const AllreduceAlgorithm algorithm : possible_algorithms(communicator, communicator.size() == 1)) {
      fill_numbers(std::span(data), communicator.rank());
      communicator.allreduce(Tensor(std::span(data)), ReduceOp::sum, algorithm);
      CHECK(count_wrong<double>(data, communicator.size()) == 0);
    }
  }
}

RANK_CASE("an algorithm that cannot be is refused on all ranks, with the reason") {
  Communicator communicator = test::world().communicator();
  if (communicator.topology().most_ranks_on_a_node == 1) return;
  std::vector<float> data(10);
  const AllreduceSpec spec{{Tensor(std::span(data))}, ReduceOp::sum, AllreduceAlgorithm::hierarchical, "test"};
  CHECK_THROWS_AS(communicator.plan(spec), InputError);
}

RANK_CASE("ranks that plan different things are told so, on all ranks") {
  Communicator communicator = test::world().communicator();
  if (communicator.size() == 1) return;
  std::vector<float> data(10 + static_cast<std::size_t>(communicator.rank()));
  CHECK_THROWS_AS(communicator.plan(AllreduceSpec{{Tensor(std::span(data))}, ReduceOp::sum, {}, "test"}), LogicError);
  const ReduceOp op = communicator.rank() == 0 ? ReduceOp::minimum : ReduceOp::maximum;
  CHECK_THROWS_AS(communicator.plan(AllreduceSpec{{Tensor(std::span(data).first(10))}, op, {}, "test"}), LogicError);
}

RANK_CASE("broadcast, allgather and reduce_scatter") {
  Communicator communicator = test::world().communicator();
  const int ranks = communicator.size(), rank = communicator.rank();
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{999}, std::size_t{300'000}}) {
    std::vector<float> mine(count), all(count * static_cast<std::size_t>(ranks));
    fill_numbers(std::span(mine), rank);
    communicator.allgather(Tensor(std::span(mine)), Tensor(std::span(all)));
    std::vector<float> expected(count);
    for (int r = 0; r < ranks; ++r) {
      fill_numbers(std::span(expected), r);
      CHECK(std::ranges::equal(std::span(all).subspan(static_cast<std::size_t>(r) * count, count), expected));
    }

    fill_numbers(std::span(all), rank);
    communicator.reduce_scatter(Tensor(std::span(all)), Tensor(std::span(mine)));
    CHECK(count_wrong<float>(mine, ranks, count * static_cast<std::size_t>(rank)) == 0);

    fill_numbers(std::span(mine), rank);
    communicator.broadcast(Tensor(std::span(mine)), ranks - 1);
    CHECK(mine == expected);
  }
}

RANK_CASE("texts go to everybody") {
  const Communicator communicator = test::world().communicator();
  const std::string mine(static_cast<std::size_t>(communicator.rank()) * 3, 'x');
  const auto texts = communicator.gather_texts(mine);
  REQUIRE(texts.size() == static_cast<std::size_t>(communicator.size()));
  for (std::size_t rank = 0; rank < texts.size(); ++rank) CHECK(texts[rank] == std::string(rank * 3, 'x'));
  const int last = communicator.size() - 1;
  CHECK(communicator.broadcast_text(mine, last) == texts.back());
  for (const int nobody : {-1, communicator.size(), 1000})
    CHECK_THROWS_AS(static_cast<void>(communicator.broadcast_text(mine, nobody)), LogicError);
}

RANK_CASE("groups that a communicator is split into are on their own") {
  const Communicator world = test::world().communicator();
  Communicator half = world.split(world.rank() % 2, -world.rank());  // in descending order of the world's ranks
  CHECK(half.size() == (world.size() + (world.rank() % 2 == 0 ? 1 : 0)) / 2);
  const auto ranks = half.gather_texts(std::to_string(world.rank()));
  for (std::size_t i = 1; i < ranks.size(); ++i) CHECK(std::stoi(ranks[i]) < std::stoi(ranks[i - 1]));

  constexpr std::size_t count = 5003;
  const Buffer memory = half.allocate(count * sizeof(float), Memory::node_shared);
  const auto data = elements_in<float>(memory, count);
  for (const AllreduceAlgorithm algorithm : possible_algorithms(half)) {
    fill_numbers(data, half.rank());
    half.allreduce(Tensor(data), ReduceOp::sum, algorithm);
    CHECK(count_wrong<float>(data, half.size()) == 0);
  }
}

RANK_CASE("memory is zeroed, aligned, and may go while the others still have theirs") {
  Communicator communicator = test::world().communicator();
  for (const Memory kind : {Memory::per_rank, Memory::node_shared}) {
    Buffer memory = communicator.allocate(100'000, kind);
    CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % Buffer::alignment == 0);
    CHECK(std::all_of(memory.data(), memory.data() + memory.bytes(), [](std::byte b) { return b == std::byte{0}; }));
    std::fill(memory.data(), memory.data() + memory.bytes(), std::byte{1});
    if (communicator.rank() == 0) memory = Buffer();  // waits for nobody
  }
  communicator.barrier();
}

}  // namespace
}  // namespace ronda::allreduce_test
