#include <ronda/core/error.hpp>
#include <ronda/runtime/checkpoint/snapshot.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <algorithm>
#include <numeric>

#include "support/catch.hpp"
#include "support/fake_device.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

struct Memory {
  std::vector<std::vector<float>> numbers;
  State state(const std::string& name, const Shape& shape, Scope scope = Scope::replicated, Layout layout = {}) {
    const TensorDesc desc{shape, DType::float32, layout};
    numbers.emplace_back(static_cast<std::size_t>(desc.padded_count()));
    std::iota(numbers.back().begin(), numbers.back().end(), 1.0F);
    return {name, Tensor(desc, numbers.back().data()), scope};
  }
};

}  // namespace

TEST_CASE("shares have each state once, what is per rank on every rank, and about as many bytes") {
  Memory memory;
  std::vector<State> states;
  for (const int size : {100, 3, 40, 7, 60, 50, 1, 20})
    states.push_back(memory.state("s" + std::to_string(size), Shape{size}));
  states.push_back(memory.state("own", Shape{1000}, Scope::per_rank));
  for (const int ranks : {1, 2, 3, 4, 9}) {
    std::map<std::string, int> seen;
    std::vector<std::int64_t> loads;
    for (int rank = 0; rank < ranks; ++rank) {
      loads.push_back(0);
      for (const auto& state : share_of(states, rank, ranks)) {
        ++seen[state.name];
        if (state.scope == Scope::replicated) loads.back() += state.tensor.desc().count();
      }
    }
    CHECK(seen.size() == 9);
    for (const auto& [name, count] : seen) CHECK(count == (name == "own" ? ranks : 1));
    if (ranks == 2) CHECK(std::abs(loads[0] - loads[1]) <= 1);
    CHECK(*std::max_element(loads.begin(), loads.end()) <= std::max<std::int64_t>(100, 281 / ranks + 40));
  }
}

TEST_CASE("a snapshot is the states as they were, in file layout and to the bit") {
  Memory memory;
  const State blocked = memory.state("w", Shape{3, 5}, Scope::replicated, Layout::parse("ab4b"));
  auto& numbers = memory.numbers.back();
  numbers[0] = -0.0F;
  numbers[1] = std::nanf("7");
  numbers[2] = std::numeric_limits<float>::denorm_min();
  const std::vector<float> before = to_file(blocked);
  Snapshot snapshot({blocked});
  snapshot.take();
  std::fill(numbers.begin(), numbers.end(), 5.0F);
  const auto tensors = snapshot.tensors();
  REQUIRE(tensors.size() == 1);
  CHECK(tensors[0].shape == Shape{3, 5});
  REQUIRE(tensors[0].values.size() == 15);
  CHECK(std::memcmp(tensors[0].values.data(), before.data(), 60) == 0);
  std::fill(numbers.begin(), numbers.end(), 0.0F);
  from_file(blocked, before);
  CHECK(std::memcmp(to_file(blocked).data(), before.data(), 60) == 0);
  CHECK(numbers[5] == 0);  // padding: the second block of a row has one column
}

TEST_CASE("a snapshot of a device's states is what they were, and its taking waits for nobody") {
  const auto device = std::make_shared<FakeDevice>("GPU-0");
  const ComputeDevice computing = ComputeDevice::on(device);
  auto& stream = dynamic_cast<FakeStream&>(*computing.stream);
  const Buffer memory = device->allocate(400 * sizeof(float));
  Memory host;
  const State own = host.state("own", Shape{20}, Scope::per_rank);  // as a residual of compression
  std::vector<State> states{{"a", floats_in(memory, 100)}, own, {"b", floats_in(memory, 300, 100)}};
  Snapshot snapshot(states, computing);
  const auto set_all = [&](float number) {  // as a step would, in its order
    stream.queue([&, number] { std::fill_n(states[0].tensor.pointer<float>(), 400, number); });
  };
  for (float number = 1; number < 4; ++number) {
    stream.hang(true);
    set_all(number);
    host.numbers[0].assign(20, number);
    const int waits = stream.host_waits();
    snapshot.take();  // the device has not come to anything yet
    set_all(-1);
    host.numbers[0].assign(20, -1.0F);
    CHECK(stream.host_waits() == waits);
    stream.hang(false);
    if (number == 2) continue;  // nobody reads this one
    const auto tensors = snapshot.tensors();
    REQUIRE(tensors.size() == 3);
    for (const auto& tensor : tensors)
      CHECK(tensor.values == std::vector<float>(static_cast<std::size_t>(tensor.shape.count()), number));
  }
  stream.synchronize();  // the last of what is queued uses the states
}

TEST_CASE("copies of a device's states are given back, and its states read and written by the host") {
  const auto device = std::make_shared<FakeDevice>("GPU-0");
  const ComputeDevice computing = ComputeDevice::on(device);
  const Buffer memory = device->allocate(100 * sizeof(float));
  const std::vector<State> states{{"a", floats_in(memory, 60)}, {"b", floats_in(memory, 40, 60)}};
  const auto numbers = [&] {
    computing.stream->synchronize();
    return std::vector<float>(floats_in(memory, 100).as<float>().begin(), floats_in(memory, 100).as<float>().end());
  };
  StatesOnHost here(states, computing);
  std::ranges::fill(here.states()[0].tensor.as<float>(), 1.0F);
  std::ranges::fill(here.states()[1].tensor.as<float>(), 2.0F);
  here.send();
  const auto sent = numbers();
  CHECK(std::ranges::count(sent, 1.0F) == 60);
  CHECK(std::ranges::count(sent, 2.0F) == 40);
  StateCopy copy(states, computing);
  copy.take();
  device->clear(memory.data(), memory.bytes(), *computing.stream);
  here.fetch();
  here.wait();
  CHECK(here.states()[0].tensor.as<float>()[59] == 0);
  copy.give_back();
  CHECK(numbers() == sent);
}

TEST_CASE("a state that is shown as sharded is for the rank that shows it") {
  Memory memory;
  const State shown = memory.state("moment", Shape{1000}, Scope::sharded);
  for (const int rank : {0, 1}) {
    const auto share = share_of(std::vector{shown}, rank, 2);
    REQUIRE(share.size() == 1);
    CHECK(share[0].name == "moment");
  }
}

TEST_CASE("states that cannot be saved are said") {
  Memory memory;
  const State state = memory.state("twice", Shape{1});
  CHECK_THROWS_AS(share_of(std::vector{state, state}, 0, 1), LogicError);
  std::vector<double> doubles(1);
  CHECK_THROWS_AS(share_of(std::vector{State{"double", Tensor(std::span(doubles))}}, 0, 1), LogicError);
}
