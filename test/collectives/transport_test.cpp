// Messages that are looked at while somebody waits for them.
#include <array>
#include <memory>
#include <span>
#include <vector>

#include <mpi.h>

#include <ronda/collectives/fabric/mpi/mpi_transport.hpp>

#include "support/catch.hpp"
#include "support/ranks.hpp"

using namespace ronda;

namespace transport_test {
namespace {

std::span<std::byte> bytes(int& number) { return std::as_writable_bytes(std::span(&number, 1)); }

}  // namespace

/// MPI numbers a request as one that it has freed.
TEST_CASE("a message that has come stays with who waits for it, whoever else looks") {
  static_cast<void>(test::world());  // MPI
  MpiTransport transport(MPI_COMM_SELF, 0, std::make_shared<const std::vector<int>>(1, 0), FabricChannel(1));
  int first = 7, second = 8, came = 0, later = 0;
  Request waits = transport.receive(0, bytes(came));
  Request sent = transport.send(0, bytes(first));
  while (transport.open().receives) continue;
  Request waits_longer = transport.receive(0, bytes(later));
  CHECK(transport.open().receives);
  CHECK(waits.arrived());
  CHECK_FALSE(waits_longer.arrived());
  Request also_sent = transport.send(0, bytes(second));
  while (!waits_longer.arrived() || !sent.arrived() || !also_sent.arrived()) continue;
  CHECK(came == 7);
  CHECK(later == 8);
  CHECK(transport.received() == 2);
  CHECK(transport.open().nothing());
}

TEST_CASE("what was given up is open until MPI has done with it") {
  static_cast<void>(test::world());  // MPI
  MpiTransport transport(MPI_COMM_SELF, 0, std::make_shared<const std::vector<int>>(1, 0), FabricChannel(1));
  int number = 7, came = 0;
  { const Request waits = transport.receive(0, bytes(came)), sent = transport.send(0, bytes(number)); }
  transport.take_back();
  while (!transport.open().nothing()) continue;
  {
    const Request nobody_sends = transport.receive(0, bytes(came));
    CHECK(transport.open().receives);
  }
  transport.take_back();
  while (!transport.open().nothing()) continue;
}

}  // namespace transport_test
