#include <algorithm>

#include <ronda/core/error.hpp>
#include <ronda/runtime/trainer/node_data.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"

using namespace ronda;
using namespace ronda::test;

namespace node_data_test {
namespace {

bool same_bytes(const Dataset& a, const Dataset& b) {
  return std::ranges::equal(a.stored(), b.stored(), [](const StoredField& x, const StoredField& y) {
    return std::ranges::equal(x.bytes, y.bytes);
  });
}

}  // namespace

TEST_CASE("one rank of a node reads, and all have the data") {
  const Communicator& all = world().communicator();
  const Mnist mnist = load_mnist(all, RONDA_MNIST);
  CHECK(mnist.train.size() == 60000);
  CHECK(mnist.test.size() == 10000);
  const Mnist alone = load_mnist(RONDA_MNIST);
  CHECK(same_bytes(mnist.train, alone.train));
  CHECK(same_bytes(mnist.test, alone.test));
}

TEST_CASE("where it cannot be read all ranks hear of it") {
  const Communicator& all = world().communicator();
  for (const int bad : {0, all.size() - 1}) {  // a rank that is given another folder than others reads that
    const char* const folder = all.rank() == bad ? "/dev/null/nowhere" : RONDA_MNIST;
    require_mentions(message_of<InputError>([&] { (void)load_mnist(all, folder); }), {"/dev/null/nowhere"});
  }
}

}  // namespace node_data_test
