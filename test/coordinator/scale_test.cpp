// What coordinators cost with many ranks: messages and bytes that a rank sends, counted between threads, and the memory
// of what a rank knows of all.
#include "support/catch.hpp"
#include "thread_link.hpp"

#include <ronda/core/error.hpp>

#include <atomic>
#include <bit>
#include <numeric>
#include <string>

namespace ronda::scale_test {
namespace {

using test::sum;
using test::wait;
using test::with_loops;

#ifdef __SANITIZE_THREAD__
constexpr std::array many_ranks{8, 32};
#else
constexpr std::array many_ranks{8, 32, 128};
#endif

/// That nobody sends more than along a tree.
void require_trees(const test::Meeting& meeting) {
  const auto ranks = meeting.sent.size();
  const auto most = 1 + static_cast<std::uint64_t>(std::bit_width(ranks - 1));
  std::uint64_t messages = 0;
  for (const auto& sent : meeting.sent) {
    CHECK(sent.merges == meeting.sent[0].merges);
    CHECK(sent.messages <= most * sent.merges);
    CHECK(sent.bytes <= sent.messages * (65536 + 4 * ranks));
    messages += sent.messages;
  }
  CHECK(messages == 2 * (ranks - 1) * meeting.sent[0].merges);
}

TEST_CASE("a new name is announced once, along a tree, by a kilobyte a message") {
  for (const int ranks : many_ranks) {
    INFO(ranks << " ranks");
    std::atomic<int> wrong = 0;
    std::atomic<std::uint64_t> announcements = 0;
    const auto meeting = with_loops(ranks, [&](CoordinatorLoop& loop) {
      std::vector<std::int32_t> values{loop.rank()};
      wait(sum(loop, "a new name", values));
      wrong += values[0] == ranks * (ranks - 1) / 2 ? 0 : 1;
      announcements = std::max(announcements.load(), loop.counters().announcements.load());
    });
    CHECK(wrong == 0);
    // Some ranks may have begun to close when others have not looked yet; whoever closes first is heard with the name.
    CHECK(announcements <= 3);
    require_trees(*meeting);
    for (const auto& sent : meeting->sent) CHECK(sent.bytes == sent.messages * CoordinatorLink::small_block);
  }
}

TEST_CASE("many names, other shapes and ranks that disagree go along trees, too") {
  for (const int ranks : many_ranks) {
    INFO(ranks << " ranks");
    constexpr std::size_t count = 50;
    std::atomic<int> wrong = 0, told = 0;
    const auto meeting = with_loops(ranks, [&](CoordinatorLoop& loop) {
      for (const std::size_t elements : {2, 3}) {  // the second shape has to be agreed upon
        std::vector<std::vector<std::int32_t>> values(count, std::vector<std::int32_t>(elements, loop.rank()));
        std::vector<SubmissionDesk::Receipt> receipts;
        for (std::size_t i = 0; i < count; ++i)
          receipts.push_back(sum(
              loop, "tensor " + std::to_string((i * 7 + static_cast<std::size_t>(loop.rank())) % count), values[i]));
        for (const auto& receipt : receipts) wait(receipt);
        for (const auto& value : values) wrong += value[0] == ranks * (ranks - 1) / 2 ? 0 : 1;
      }
      std::vector<std::int32_t> odd(loop.rank() % 2 == 0 ? 4 : 5);
      try {
        wait(sum(loop, "tensor 0", odd));
        ++wrong;
      } catch (const LogicError& error) {
        const std::string text = error.what();
        told += text.find("rank 0, rank 2") != std::string::npos && text.find("rank 1, rank 3") != std::string::npos;
      }
    });
    CHECK(wrong == 0);
    CHECK(told == ranks);
    require_trees(*meeting);
  }
}

TEST_CASE("what many ranks miss is told in a line, and who has it found along trees") {
  for (const int ranks : many_ranks) {
    INFO(ranks << " ranks");
    std::mutex door;
    std::vector<std::string> warnings;
    CoordinatorLoop::Options options{.tuning = {}, .missing_warning = 0.2, .missing_limit = 1, .on_warning = {}};
    options.on_warning = [&](const std::string& text) {
      const std::lock_guard lock(door);
      warnings.push_back(text);
    };
    std::atomic<int> given_up = 0, wrong = 0;
    std::barrier<> all(ranks);
    const auto meeting = with_loops(
        ranks,
        [&](CoordinatorLoop& loop) {
          std::vector<std::int32_t> values{1};
          const bool late = loop.rank() % 2 == 0;  // no two ranks in turn do the same
          if (late) all.arrive_and_wait();
          try {
            wait(sum(loop, "x", values));
            ++wrong;
          } catch (const CommunicationError&) {
            ++given_up;
          }
          if (!late) all.arrive_and_wait();
          values = {1};
          wait(sum(loop, "x", values));
          wrong += values[0] == ranks ? 0 : 1;
        },
        options);
    CHECK(given_up == ranks);
    CHECK(wrong == 0);
    CHECK(warnings.size() >= static_cast<std::size_t>(ranks));
    const std::string& first = warnings.front();
    CHECK_THAT(first, Contains("for 0.2 s not by rank 0, rank 2"));
    if (ranks > 20) CHECK_THAT(first, Contains(" more, and for ") && Contains("rank 14 and "));
    CHECK(first.size() < 400);
    require_trees(*meeting);
  }
}

TEST_CASE("what all of many ranks say alike takes the room of one") {
  constexpr int ranks = 4096;
  NameTable table(ranks, [](int rank) { return std::to_string(rank); });
  const auto say = [&](std::int64_t count, const RankSet& who) {
    const Descriptor descriptor{NamedKind::allreduce, ReduceOp::sum, 0, {{Shape{count}, DType::float32}}};
    return table.hear(std::vector<Announcement>{{Announcement::What::tensors, "x", descriptor, who}});
  };
  say(3, RankSet::all(ranks));
  for (int rank = 0; rank < ranks - 1; ++rank) say(4, RankSet(rank));
  REQUIRE(table[0].contested);
  REQUIRE(table[0].variants.size() == 1);
  CHECK(table[0].variants[0].ranks.ranges().size() == 1);
  CHECK(say(4, RankSet(ranks - 1)).failures.empty());
  CHECK(!table[0].contested);
}

}  // namespace
}  // namespace ronda::scale_test
