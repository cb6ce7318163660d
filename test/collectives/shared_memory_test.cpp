// What happens where the node's shared memory is too small: private memory on all ranks, and a note that says why.
#include "support/catch.hpp"
#include "support/numbers.hpp"
#include "support/ranks.hpp"

#include <ronda/collectives/communicator.hpp>
#include <ronda/coordinator/coordinator.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace ronda::shared_memory_test {
namespace {

constexpr std::size_t many = std::size_t{1} << 20;

// Run with RONDA_SHARED_MEMORY_LIMIT of 18 MiB: 16 of them are MPI's.
TEST_CASE("memory that does not fit is private, and reductions still work") {
  Communicator communicator = test::world().communicator();
  const Buffer memory = communicator.allocate(many * sizeof(float), Memory::node_shared);
  const auto notes = communicator.take_notes();
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].text().find("/dev/shm has 18.0 MiB free") != std::string::npos);
  const Buffer second = communicator.allocate(many * sizeof(float), Memory::node_shared);
  CHECK(communicator.take_notes().empty());  // one is enough

  const auto data = test::elements_in<float>(memory, many);
  const auto reduction =
      communicator.plan(AllreduceSpec{{Tensor(data)}, ReduceOp::sum, AllreduceAlgorithm::automatic, "test"});
  CHECK(reduction->algorithm() != "node");
  test::fill_numbers(data, communicator.rank());
  reduction->start().wait();
  CHECK(test::count_wrong<float>(data, communicator.size()) == 0);
}

TEST_CASE("memory that fits is shared") {
  Communicator communicator = test::world().communicator();
  const Buffer memory = communicator.allocate(64 * 1024, Memory::node_shared);
  CHECK(communicator.take_notes().empty());
  const auto data = test::elements_in<float>(memory, 1024);
  CHECK(communicator.copies_on_node(Tensor(data)).size() == static_cast<std::size_t>(communicator.size()));
  const auto reduction = communicator.plan(AllreduceSpec{{Tensor(data)}, ReduceOp::sum, {}, "test"});
  CHECK(reduction->algorithm() == "node");
}

TEST_CASE("memory that is one for the node is everybody's, and needs room for one") {
  Communicator communicator = test::world().communicator();
  constexpr std::size_t count = many * 3 / 8;  // 1.5 MiB
  const Buffer memory = communicator.allocate(count * sizeof(float), Memory::one_a_node);
  REQUIRE(communicator.take_notes().empty());
  const auto data = test::elements_in<float>(memory, count);
  for (const std::byte* copy : communicator.copies_on_node(Tensor(data)))
    CHECK(copy == reinterpret_cast<std::byte*>(data.data()));
  const auto ranks = static_cast<std::size_t>(communicator.size()),
             rank = static_cast<std::size_t>(communicator.rank());
  CHECK(std::ranges::count(data, 0.0F) == count);
  communicator.barrier();
  for (std::size_t i = rank; i < count; i += ranks) data[i] = static_cast<float>(i);
  communicator.barrier();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += data[i] == static_cast<float>(i) ? 0 : 1;
  CHECK(wrong == 0);
}

TEST_CASE("memory that is one for the node is refused where each rank gives its own, and taken by a broadcast") {
  Communicator communicator = test::world().communicator();
  const Buffer memory = communicator.allocate(8192 * sizeof(float), Memory::one_a_node);
  for (const std::size_t count : {4, 8192}) {
    const Tensor tensor(test::elements_in<float>(memory, count));
    std::vector<float> other(count);
    CHECK_THROWS_AS(communicator.allreduce(tensor), LogicError);
    CHECK_THROWS_AS(communicator.plan(AllreduceSpec{{tensor}}), LogicError);
    CHECK_THROWS_AS(communicator.reduce(tensor, 0), LogicError);
    CHECK_THROWS_AS(communicator.plan(ReduceScatterSpec{tensor}), LogicError);
    CHECK_THROWS_AS(communicator.alltoall(tensor, Tensor(std::span(other))), LogicError);
    CHECK_NOTHROW(communicator.broadcast(tensor, 0));
  }
}

TEST_CASE("memory that is one for the node and does not fit is each rank's own") {
  Communicator communicator = test::world().communicator();
  const Buffer memory = communicator.allocate(many * sizeof(float), Memory::one_a_node);
  const auto notes = communicator.take_notes();
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].text().find("/dev/shm has 18.0 MiB free, 4.0 MiB are needed") != std::string::npos);
  CHECK(notes[0].text().find("the node's ranks have no memory in common") != std::string::npos);
  CHECK(communicator.copies_on_node(Tensor(test::elements_in<float>(memory, many))).empty());
}

TEST_CASE("a coordinator tells of memory that does not fit, once") {
  std::vector<std::string> warnings;
  CoordinatorOptions options;
  options.on_warning = [&](const std::string& text) { warnings.push_back(text); };
  const Communicator world = test::world().communicator();
  Coordinator coordinator(world.split(0, world.rank()), options);  // a group without a note so far
  std::vector<float> values(1000, 1.0F);
  for (int step = 0; step < 3; ++step) coordinator.allreduce("x", Tensor(std::span(values))).wait();
  coordinator.close();
  REQUIRE(std::ranges::count_if(warnings, [](const std::string& text) {
            return text.find("reductions use private memory") != std::string::npos;
          }) == 1);
}

// As many as need more for their barriers than the limit leaves.
TEST_CASE("tensors in shared memory for whose barriers there is no room go by messages, where that was left open") {
  Communicator communicator = test::world().communicator();
  constexpr std::size_t tensors = 15'000;
  const Buffer memory = communicator.allocate(tensors * sizeof(float), Memory::node_shared);
  REQUIRE(communicator.take_notes().empty());
  const auto data = test::elements_in<float>(memory, tensors);
  AllreduceSpec spec{{}, ReduceOp::sum, AllreduceAlgorithm::automatic, "test"};
  for (std::size_t i = 0; i < tensors; ++i) spec.tensors.emplace_back(data.subspan(i, 1));
  auto reduction = communicator.plan(spec);
  const auto notes = communicator.take_notes();
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].text().find("no shared memory for the node's barriers: ") == 0);
  CHECK(notes[0].text().find("/dev/shm has 18.0 MiB free") != std::string::npos);
  CHECK(reduction->algorithm() == "doubling");
  test::fill_numbers(data, communicator.rank());
  reduction->start().wait();
  CHECK(test::count_wrong<float>(data, communicator.size()) == 0);

  reduction.reset();        // and its channels
  const auto by_messages =  // takes no such room
      communicator.plan(AllreduceSpec{spec.tensors, ReduceOp::sum, AllreduceAlgorithm::doubling, "test"});
  CHECK(communicator.take_notes().empty());
  spec.algorithm = AllreduceAlgorithm::node;
  CHECK_THROWS_AS(communicator.plan(spec), ResourceError);
}

}  // namespace
}  // namespace ronda::shared_memory_test
