// Messages with many ranks, few at a time.
#include "support/catch.hpp"
#include "support/heap.hpp"
#include "support/ranks.hpp"
#include "strategy/device_run.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include <ronda/runtime/strategy/arena_shares.hpp>
#include <ronda/runtime/strategy/exchange/gradient_pushes.hpp>
#include <ronda/runtime/strategy/exchange/message_window.hpp>

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
    const auto plan = [&](std::size_t number) {  // rank 0 sends to the others in turns
      const Tensor tensor{std::span(numbers[number])};
      const int other = static_cast<int>(number) % peers + 1;
      if (ranks.rank() == 0) return ranks.plan(SendSpec{tensor, other, "a number"});
      return ranks.plan(ReceiveSpec{tensor, 0, "a number"});
    };
    std::vector<std::size_t> mine;  // those of this rank
    for (std::size_t i = 0; i < count; ++i)
      if (ranks.rank() == 0 || static_cast<int>(i) % peers + 1 == ranks.rank()) mine.push_back(i);
    MessageWindow window(ranks, mine.size(), [&](std::size_t number) { return plan(mine[number]); });
    for (int step = 0; step < 3; ++step) {
      for (std::size_t i = 0; i < count; ++i)
        std::ranges::fill(numbers[i], ranks.rank() == 0 ? static_cast<std::int32_t>(i) + 100 * step : -1);
      window.start(*processor.stream);
      window.wait();
      for (const std::size_t i : mine)
        CHECK(std::ranges::all_of(numbers[i], [&](int n) { return n == static_cast<int>(i) + 100 * step; }));
    }
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
