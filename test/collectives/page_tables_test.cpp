// What shared memory costs a rank in page tables: its own segment, and the part that it sums of the others'.
#include "support/catch.hpp"
#include "support/numbers.hpp"
#include "support/ranks.hpp"

#include <ronda/collectives/communicator.hpp>

#include <fstream>
#include <iostream>
#include <string>

namespace ronda::page_tables_test {
namespace {

std::size_t bytes_of_page_tables() {
  std::ifstream status("/proc/self/status");
  for (std::string name; status >> name;)
    if (std::size_t kibibytes = 0; name == "VmPTE:" && status >> kibibytes) return kibibytes << 10;
  return 0;
}

TEST_CASE("page tables grow by a rank's own memory and its part of the others'") {
  Communicator communicator = test::world().communicator();
  constexpr std::size_t bytes = std::size_t{32} << 20, page = 4096, entry = 8;
  const auto ranks = static_cast<std::size_t>(communicator.size());
  communicator.barrier();
  const std::size_t before = bytes_of_page_tables();
  const Buffer memory = communicator.allocate(bytes, Memory::node_shared);
  if (!communicator.take_notes().empty()) {
    std::cerr << "/dev/shm has no room for this test\n";
    return;
  }
  const std::size_t allocated = bytes_of_page_tables();
  const auto data = test::elements_in<float>(memory, bytes / sizeof(float));
  const auto reduction =
      communicator.plan(AllreduceSpec{{Tensor(data)}, ReduceOp::sum, AllreduceAlgorithm::node, "all"});
  for (float& number : data) number = 1;
  for (int turn = 0; turn < 2; ++turn) reduction->start().wait();
  CHECK(data.front() == static_cast<float>(ranks * ranks));
  CHECK(data.back() == static_cast<float>(ranks * ranks));
  const std::size_t after = bytes_of_page_tables();
  const std::size_t own = bytes / page * entry, part = own / ranks;
  // Tables come by pages: of a part that lies anyhow, two; and one of tables for each gibibyte of addresses.
  CHECK(allocated <= before + own + 4 * page + ranks * page);
  CHECK(after <= before + own + 16 * page + ranks * (part + 3 * page));
  if (communicator.rank() == 0)
    std::cerr << ranks << " ranks: " << ((after - before) >> 10) << " KiB of page tables a rank\n";
}

}  // namespace
}  // namespace ronda::page_tables_test
