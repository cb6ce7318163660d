// Messages with many ranks, few at a time.
#include "support/catch.hpp"
#include "support/memory.hpp"
#include "support/ranks.hpp"
#include "strategy/device_run.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/parameter_server/gradient_pushes.hpp>
#include <ronda/runtime/strategy/parameter_server/message_window.hpp>

using namespace ronda;
using namespace ronda::test;

namespace message_window_test {

TEST_CASE("as many messages as there are come in their order, whether they stay planned or not") {
  Communicator ranks = everybody();
  if (ranks.size() < 2) return;
  const ComputeDevice processor = ComputeDevice::processor();
  for (const std::size_t count : {std::size_t{0}, std::size_t{3}, MessageWindow::most, std::size_t{50}}) {
    std::vector<std::vector<std::int32_t>> numbers(count, std::vector<std::int32_t>(20'000));
    const int peers = ranks.size() - 1;
    // Rank 0 sends to the others in turns: a lane each.
    std::vector<std::vector<std::size_t>> mine(ranks.rank() == 0 ? static_cast<std::size_t>(peers) : 1);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t peer = i % static_cast<std::size_t>(peers);
      if (ranks.rank() == 0) mine[peer].push_back(i);
      if (ranks.rank() == static_cast<int>(peer) + 1) mine[0].push_back(i);
    }
    std::vector<std::size_t> counts;
    for (const auto& lane : mine) counts.push_back(lane.size());
    MessageWindow window(ranks, counts, [&](std::size_t lane, std::size_t number) {
      const Tensor tensor{std::span(numbers[mine[lane][number]])};
      if (ranks.rank() == 0) return ranks.plan(SendSpec{tensor, static_cast<int>(lane) + 1, "a number"});
      return ranks.plan(ReceiveSpec{tensor, 0, "a number"});
    });
    for (int step = 0; step < 3; ++step) {
      for (std::size_t i = 0; i < count; ++i)
        std::ranges::fill(numbers[i], ranks.rank() == 0 ? static_cast<std::int32_t>(i) + 100 * step : -1);
      window.start(*processor.stream);
      window.wait();
      for (const auto& lane : mine)
        for (const std::size_t i : lane)
          CHECK(std::ranges::all_of(numbers[i], [&](int n) { return n == static_cast<int>(i) + 100 * step; }));
    }
  }
}

TEST_CASE("a rank that is late holds up no other's messages, and none goes before it may") {
  Communicator ranks = everybody();
  if (ranks.size() < 3) return;
  const ComputeDevice processor = ComputeDevice::processor();
  constexpr std::size_t count = 30;  // many more than may be under way
  static_assert(count > 4 * MessageWindow::most);
  std::vector<std::vector<std::int32_t>> numbers(2, std::vector<std::int32_t>(count, -1));
  if (ranks.rank() == 0) {
    MessageWindow window(ranks, {count, count}, [&](std::size_t lane, std::size_t number) {
      return ranks.plan(
          ReceiveSpec{Tensor(std::span(&numbers[lane][number], 1)), static_cast<int>(lane) + 1, "a number"});
    });
    window.start(*processor.stream, count - 1);
    ranks.wait_until([&] {  // rank 1 begins when it hears that all but the last of rank 2 have come
      static_cast<void>(window.move_on());
      return numbers[1][count - 2] == static_cast<int>(count) - 2;
    });
    CHECK(numbers[1][count - 1] == -1);
    CHECK(numbers[0][0] == -1);
    CHECK(window.done_in_all() == 0);
    ranks.send(Tensor(std::span(numbers[1])), 1);
    window.release_in_all(count, *processor.stream);
    window.wait();
    CHECK(window.done_in_all() == count);
    for (std::size_t i = 0; i < count; ++i)
      CHECK((numbers[0][i] == static_cast<int>(i) && numbers[1][i] == static_cast<int>(i)));
  } else if (ranks.rank() <= 2) {
    std::vector<std::int32_t> sent(count);
    std::iota(sent.begin(), sent.end(), 0);
    if (ranks.rank() == 1) ranks.receive(Tensor(std::span(numbers[1])), 0);
    for (std::int32_t& number : sent) ranks.send(Tensor(std::span(&number, 1)), 0);
  }
}

TEST_CASE("a server keeps little for each worker beside its gradients") {
  if (!counts_heap()) return;
  const Communicator ranks = everybody();
  constexpr std::size_t bucket = 16, arena_elements = 8 * bucket;  // small: large memory is rounded up
  std::vector<FusionBuffer::Bucket> buckets;
  for (std::size_t i = 0; i < 8; ++i)
    buckets.push_back({i, i + 1, i * bucket * sizeof(float), bucket * sizeof(float), {}, {}});
  const Buffer arena = Buffer::host(arena_elements * sizeof(float));
  // Of so many none is planned before it is started: there need not be as many ranks.
  if (ranks.size() < 2 || ranks.rank() != 0) return;
  for (const Compression compression : {Compression::none, Compression::two_bit}) {
    std::vector<std::int64_t> kept;
    for (const int workers : {32, 256}) {
      const Roles roles(workers + 1, 1);
      std::vector<Range> shares(static_cast<std::size_t>(workers) + 1);
      shares[0] = {0, arena_elements};  // of this rank, whatever it is in `roles`
      const std::int64_t before = heap_bytes();
      const GradientArrivals arrivals(ranks, roles, cut_buckets(buckets, shares), shares[0], arena,
                                      {.compression = compression});
      kept.push_back(heap_bytes() - before - static_cast<std::int64_t>(arrivals.memory()));
    }
    CHECK((kept[1] - kept[0]) / (256 - 32) < 256);
  }
}

}  // namespace message_window_test
