// What happens where the node's shared memory is too small: private memory on all ranks, and a note that says why.
#include "support/catch.hpp"
#include "support/numbers.hpp"
#include "support/ranks.hpp"

#include <ronda/collectives/communicator.hpp>

namespace ronda {
namespace {

constexpr std::size_t count = std::size_t{1} << 20;

// Run with RONDA_SHARED_MEMORY_LIMIT of 18 MiB: 16 of them are MPI's.
TEST_CASE("memory that does not fit is private, and reductions still work") {
  Communicator communicator = test::world().communicator();
  const Buffer memory = communicator.allocate(count * sizeof(float), Memory::node_shared);
  const auto notes = communicator.take_notes();
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].find("/dev/shm has 18.0 MiB free") != std::string::npos);
  CHECK(communicator.take_notes().empty());

  const auto data = test::elements_in<float>(memory, count);
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
}

}  // namespace
}  // namespace ronda
