// What a coordinator is made of, without MPI: the table of names, the tuner, and the whole loop between threads, one a
// rank, where ThreadSanitizer looks on.
#include "support/catch.hpp"
#include "thread_link.hpp"

#include <ronda/collectives/host/reduction.hpp>
#include <ronda/coordinator/detail/communicator_link.hpp>
#include <ronda/coordinator/detail/loop.hpp>
#include <ronda/coordinator/detail/tuner.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <array>
#include <barrier>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

namespace ronda::parts_test {
namespace {

using test::sum;
using test::wait;
using test::with_loops;

// ---- announcements and names ----------------------------------------------------------------------------------------

Descriptor sum_of(std::int64_t count) {
  return {NamedKind::allreduce, ReduceOp::sum, 0, {{Shape{count}, DType::float32}}};
}
Announcement has(const std::string& name, std::int64_t count) {
  return {Announcement::What::tensors, name, sum_of(count), {}};
}
Announcement says(Announcement::What what) { return {what, {}, {}, {}}; }

using Bytes = std::vector<std::byte>;

/// What each rank announces.
using Round = std::vector<std::vector<Announcement>>;

/// All of it merged, as it comes to all ranks.
std::vector<Announcement> merged(const Round& round) {
  Bytes all(65536);
  AnnouncementBlock first(all);
  for (std::size_t rank = 0; rank < round.size(); ++rank) {
    Bytes mine(all.size());
    AnnouncementBlock block(mine);
    for (Announcement announcement : round[rank]) {
      announcement.ranks = RankSet(static_cast<int>(rank));
      block.add(announcement);
    }
    merge_announcements(all, mine);
  }
  return Announcements::read(all).all;
}

NameTable table_of(int ranks) {
  return {ranks, [](int rank) { return "rank " + std::to_string(rank) + " on " + static_cast<char>('a' + rank); }};
}

TEST_CASE("announcements are read as they were written, and only what fits is") {
  Bytes bytes(1024);
  AnnouncementBlock block(bytes);
  CHECK(Announcements::read(bytes).all.empty());
  RankSet ranks(7);
  ranks.add({3, 5});
  const Descriptor several{
      NamedKind::broadcast, ReduceOp::sum, 3, {{Shape{2, 3}, DType::int8}, {Shape{}, DType::float64}}};
  REQUIRE(block.add({Announcement::What::tensors, "a name", several, ranks}));
  REQUIRE(block.add({Announcement::What::left, "why", {}, RankSet(2)}));
  CHECK(!Announcements::read(bytes).left_out);
  int more = 0;
  while (block.add({Announcement::What::tensors, "x", sum_of(7), {}})) ++more;
  const auto [announcements, left_out] = Announcements::read(bytes);
  CHECK(left_out);
  REQUIRE(announcements.size() == 2 + static_cast<std::size_t>(more));
  CHECK(announcements[0].name == "a name");
  CHECK(announcements[0].descriptor == several);
  CHECK(announcements[0].ranks == ranks);
  CHECK(announcements[1].what == Announcement::What::left);
  CHECK(announcements.back().descriptor == sum_of(7));
}

TEST_CASE("a damaged block of announcements is an error, never read beyond") {
  Bytes whole(1024);
  AnnouncementBlock block(whole);
  while (block.add({Announcement::What::tensors, "a name", sum_of(7), RankSet(2)})) {
  }
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    Bytes damaged(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(random() % whole.size()));
    for (int flips = 0; flips < 3 && !damaged.empty(); ++flips)
      damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    try {
      static_cast<void>(Announcements::read(damaged));
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 10'000);
}

TEST_CASE("what all ranks say is merged into one announcement, whatever was left out is said to be") {
  Bytes mine(1024), other(1024);
  AnnouncementBlock block(mine), others(other);
  block.add({Announcement::What::tensors, "x", sum_of(3), RankSet(0)});
  others.add({Announcement::What::tensors, "x", sum_of(3), RankSet(1)});
  others.add({Announcement::What::tensors, "x", sum_of(4), RankSet(2)});
  others.add({Announcement::What::joined, "", {}, RankSet(2)});
  merge_announcements(mine, other);
  const auto both = Announcements::read(mine);
  REQUIRE(both.all.size() == 3);
  CHECK(both.all[0].ranks == RankSet::all(2));
  CHECK(both.all[1].descriptor == sum_of(4));
  CHECK(both.say(Announcement::What::joined, 2));
  CHECK(!both.say(Announcement::What::joined, 1));
  CHECK(!both.left_out);
  while (others.add({Announcement::What::tensors, "y", sum_of(4), RankSet(2)})) {
  }
  merge_announcements(mine, other);
  CHECK(Announcements::read(mine).left_out);
}

TEST_CASE("a set of ranks holds what was added, in ranges") {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::array<bool, 20> has{};
    RankSet set;
    for (int i = 0; i < 6; ++i) {
      const int first = static_cast<int>(random() % 20), last = std::min(19, first + static_cast<int>(random() % 4));
      set.add({first, last});
      std::fill(has.begin() + first, has.begin() + last + 1, true);
    }
    const RankSet others = set.complement(20);
    RankSet all = set;
    all.add(others);
    CHECK(all == RankSet::all(20));
    CHECK(set.size() == static_cast<std::size_t>(std::count(has.begin(), has.end(), true)));
    for (int rank = 0; rank < 20; ++rank) {
      CHECK(set.contains(rank) == has[static_cast<std::size_t>(rank)]);
      CHECK(others.contains(rank) != set.contains(rank));
    }
  }
  const auto name = [](int rank) { return "rank " + std::to_string(rank); };
  CHECK(RankSet::all(2).text(name) == "rank 0, rank 1");
  CHECK_THAT(RankSet::all(4096).text(name), Contains("rank 7 and 4088 more"));
}

TEST_CASE("the first to announce a name settles it; who has the same need not say so") {
  NameTable table = table_of(3);
  const auto changes = table.hear(merged(Round{{}, {has("x", 3), has("y", 4)}, {has("x", 3)}}));
  CHECK(changes.contested.empty());
  CHECK(changes.failures.empty());
  CHECK(table.find("x") == 0U);
  CHECK(table.find("y") == 1U);
  CHECK(!table.find("z"));
  CHECK(table[0].descriptor == sum_of(3));
}

TEST_CASE("a contested name waits for all ranks, then changes or fails") {
  NameTable table = table_of(3);
  table.hear(merged(Round{{has("x", 3)}, {}, {}}));
  auto changes = table.hear(merged(Round{{}, {has("x", 5)}, {}}));
  CHECK(changes.contested == std::vector<std::uint32_t>{0});
  CHECK(table[0].contested);
  changes = table.hear(merged(Round{{has("x", 5)}, {}, {}}));
  CHECK(table[0].contested);
  SECTION("all the same") {
    changes = table.hear(merged(Round{{}, {}, {has("x", 5)}}));
    CHECK(!table[0].contested);
    CHECK(table[0].descriptor == sum_of(5));
    CHECK(changes.failures.empty());
  }
  SECTION("one is different") {
    changes = table.hear(merged(Round{{}, {}, {has("x", 6)}}));
    REQUIRE(changes.failures.size() == 1);
    CHECK_THAT(changes.failures[0].text, Contains("'x'") && Contains("rank 0 on a, rank 1 on b: sum of float32 (5)") &&
                                             Contains("rank 2 on c: sum of float32 (6)"));
    CHECK(!table[0].contested);
  }
  SECTION("one has joined") {
    changes = table.hear(merged(Round{{}, {}, {says(Announcement::What::joined)}}));
    CHECK(!table[0].contested);
    CHECK(changes.failures.empty());
  }
}

TEST_CASE("all have joined when the last has, and begin anew; who has closed keeps nobody waiting") {
  NameTable table = table_of(3);
  const Announcement joined = says(Announcement::What::joined), closed = says(Announcement::What::closed);
  CHECK(!table.hear(merged(Round{{joined}, {}, {}})).all_joined);
  CHECK(table.has_joined(0));
  CHECK(!table.hear(merged(Round{{}, {}, {joined}})).all_joined);
  CHECK(table.hear(merged(Round{{}, {joined}, {}})).all_joined);
  CHECK(table.last_to_join() == 1);
  CHECK(!table.anybody_joined());
  CHECK(!table.hear(merged(Round{{}, {closed}, {}})).all_joined);
  CHECK(table.closed() == RankSet(1));
  CHECK(table.hear(merged(Round{{joined}, {}, {joined}})).all_joined);
  CHECK(table.hear(merged(Round{{closed}, {}, {closed}})).all_closed);
}

TEST_CASE("there are only so many names") {
  NameTable table = table_of(1);
  for (std::size_t i = 0; i < NameTable::capacity; ++i) table.hear(std::array{has("n" + std::to_string(i), 1)});
  const auto changes = table.hear(merged(Round{{has("one more", 1)}}));
  REQUIRE(changes.failures.size() == 1);
  CHECK_THAT(changes.failures[0].text, Contains("again and again"));
}

// ---- batches --------------------------------------------------------------------------------------------------------

TEST_CASE("a size class holds what it is for, and little more") {
  std::size_t last = 0;
  for (std::size_t bytes = 1; bytes < 5'000'000; bytes += 1 + bytes / 50) {
    const std::size_t rounded = CommunicatorLink::size_class(bytes);
    CHECK(rounded >= bytes);
    CHECK(rounded % 32 == 0);
    CHECK((rounded <= 256 || rounded < bytes + bytes / 7));
    CHECK(rounded >= last);
    last = rounded;
  }
  for (const std::size_t power : {256U, 4096U, 1U << 20}) CHECK(CommunicatorLink::size_class(power) == power);
}

TEST_CASE("what a rank that has joined gives changes nothing") {
  constexpr ReduceOp operations[] = {ReduceOp::sum, ReduceOp::minimum, ReduceOp::maximum, ReduceOp::product};
  const auto check = [&]<class T>(const T& value) {
    for (const ReduceOp op : operations) {
      std::array<T, 3> values{value, value, value}, neutral{};
      fill_neutral(op, dtype_of<T>, std::as_writable_bytes(std::span(neutral)));
      combine(op, {reinterpret_cast<std::byte*>(values.data()), 3, dtype_of<T>},
              reinterpret_cast<const std::byte*>(neutral.data()));
      INFO(name_of(op) << " of " << name_of(dtype_of<T>));
      CHECK(std::ranges::equal(std::as_bytes(std::span(&values[2], 1)), std::as_bytes(std::span(&value, 1))));
    }
  };
  check(-3.5F);
  check(1e300);
  check(to_half<Float16>(2.5F));
  check(to_half<BFloat16>(-2.5F));
  check(std::int8_t{-128});
  check(std::uint8_t{255});
  check(std::numeric_limits<std::int32_t>::min());
  check(std::numeric_limits<std::int64_t>::max());
  std::int32_t bits = 0x1234, all = 0;
  fill_neutral(ReduceOp::bitwise_and, DType::int32, std::as_writable_bytes(std::span(&all, 1)));
  CHECK((bits & all) == bits);
}

// ---- the tuner ------------------------------------------------------------------------------------------------------

/// Feeds a tuner cycles that take as long as `seconds` says, until it has settled.
template <class Seconds>
int settle(CycleTuner& tuner, double work, const Seconds& seconds) {
  int cycles = 0;
  for (; !tuner.settled() && cycles < 1'000'000; ++cycles) tuner.observe(seconds(tuner.settings()), work);
  return cycles;
}

TEST_CASE("the tuner finds the best settings of a plain landscape, and stays there") {
  CycleTuner tuner({});
  const auto seconds = [](const CycleSettings& settings) {  // best at 1 MiB and 100 us
    return 1e-3 * (1 + 0.2 * std::abs(std::log2(static_cast<double>(settings.batch_bytes)) - 20) +
                   2e3 * std::abs(settings.gather_seconds - 100e-6));
  };
  settle(tuner, 1e6, seconds);
  CHECK(tuner.settled());
  CHECK(tuner.settings() == CycleSettings{std::size_t{1} << 20, 100e-6});
  for (int i = 0; i < 10'000; ++i) CHECK(!tuner.observe(seconds(tuner.settings()), 1e6));
  for (int i = 0; i < 1000; ++i) tuner.observe(seconds(tuner.settings()), 5e6);  // other work: it looks again
  settle(tuner, 5e6, seconds);
  CHECK(tuner.settings() == CycleSettings{std::size_t{1} << 20, 100e-6});
}

TEST_CASE("the tuner leaves alone what is fixed") {
  CycleTuner fixed({.fixed_batch = 65536, .fixed_gather = 5e-5});
  CHECK(fixed.settled());
  CHECK(fixed.settings() == CycleSettings{65536, 5e-5});
  CycleTuner half({.fixed_batch = 65536, .fixed_gather = {}});
  settle(half, 1, [](const CycleSettings& settings) { return 1e-3 / (1 + 1e4 * settings.gather_seconds); });
  CHECK(half.settings() == CycleSettings{65536, 1e-3});
}

// ---- the loop, between threads --------------------------------------------------------------------------------------

TEST_CASE("ranks as threads, several submitting at once, in different orders") {
  constexpr int ranks = 3, submitters = 3, rounds = 20;
  constexpr std::size_t count = 60;
  std::atomic<int> wrong = 0;
  with_loops(ranks, [&](CoordinatorLoop& loop) {
    std::vector<std::vector<std::int32_t>> tensors(count);
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::mt19937 random(static_cast<unsigned>(loop.rank()));
    for (int round = 0; round < rounds; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      for (std::size_t i = 0; i < count; ++i) tensors[i].assign(1 + 50 * i, loop.rank() + round);
      std::vector<std::thread> threads;
      for (std::size_t submitter = 0; submitter < submitters; ++submitter)
        threads.emplace_back([&, submitter] {
          std::vector<SubmissionDesk::Receipt> receipts;
          for (std::size_t i = submitter; i < count; i += submitters)
            receipts.push_back(sum(loop, "t" + std::to_string(order[i]), tensors[order[i]]));
          for (const auto& receipt : receipts) wait(receipt);
        });
      for (auto& thread : threads) thread.join();
      for (const auto& tensor : tensors)
        for (const std::int32_t value : tensor) wrong += value == ranks * (ranks - 1) / 2 + ranks * round ? 0 : 1;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("ranks as threads join, disagree, and form groups") {
  std::atomic<int> wrong = 0, errors = 0;
  with_loops(4, [&](CoordinatorLoop& loop) {
    std::vector<std::int32_t> values{1};
    for (int step = 0; step < loop.rank(); ++step) {
      values = {1};
      wait(sum(loop, "step", values));
      wrong += values[0] == 3 - step ? 0 : 1;
    }
    wrong += loop.desk().join() == 3 ? 0 : 1;

    values.assign(loop.rank() == 2 ? 5 : 4, 1);
    try {
      wait(sum(loop, "odd", values));
    } catch (const LogicError&) {
      ++errors;
    }

    const auto receipt =
        loop.desk().submit("split", {.kind = NamedKind::split, .color = loop.rank() % 2, .key = -loop.rank()}, {});
    wait(receipt);
    const auto group = std::static_pointer_cast<CoordinatorLoop>(receipt.submission->result);
    wrong += group->size() == 2 && group->rank() == (loop.rank() < 2 ? 1 : 0) ? 0 : 1;
    for (int round = 0; round < 5; ++round) {
      std::vector<std::int32_t> of_group{loop.rank()}, of_all{loop.rank()};
      const auto first = sum(*group, "x", of_group), second = sum(loop, "x", of_all);
      wait(first);
      wait(second);
      wrong += of_group[0] == 2 * (loop.rank() % 2) + 2 && of_all[0] == 6 ? 0 : 1;
    }
    group->desk().close();
  });
  CHECK(wrong == 0);
  CHECK(errors == 4);
}

// Ranks that are late at random, for longer than the others wait.
TEST_CASE("a use of a name succeeds on all ranks, with each rank's tensor of that use, or fails on all") {
  constexpr int ranks = 3, uses = 20;
  constexpr std::size_t names = 3;
  std::array<std::array<std::array<char, uses>, names>, ranks> succeeded{};
  std::atomic<int> mixed = 0;
  const auto body = [&](CoordinatorLoop& loop) {
    std::mt19937 random(static_cast<unsigned>(loop.rank() + 1));
    for (int use = 0; use < uses; ++use) {
      std::array<std::vector<std::int32_t>, names> values;
      std::array<SubmissionDesk::Receipt, names> receipts;
      for (std::size_t i = 0; i < names; ++i) {
        const std::size_t name = (i + static_cast<std::size_t>(use)) % names;
        if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5 + random() % 100));
        values[name] = {use};
        receipts[name] = sum(loop, "name " + std::to_string(name), values[name]);
      }
      for (std::size_t name = 0; name < names; ++name) try {
          wait(receipts[name]);
          succeeded[static_cast<std::size_t>(loop.rank())][name][static_cast<std::size_t>(use)] = 1;
          mixed += values[name][0] == ranks * use ? 0 : 1;
        } catch (const CommunicationError&) {
        }
    }
  };
  CoordinatorLoop::Options options{.tuning = {}, .missing_warning = 0, .missing_limit = 0.05, .on_warning = {}};
  with_loops(ranks, body, options);
  CHECK(mixed == 0);
  CHECK(succeeded[1] == succeeded[0]);
  CHECK(succeeded[2] == succeeded[0]);
}

/// Stands in a call, as a coordinator does that waits inside MPI for a rank that is stopped.
class StandingLink final : public test::ThreadLink {
 public:
  using ThreadLink::ThreadLink;
  void start(int stage, ReduceOp op, DType dtype, std::size_t bytes) override {
    standing.store(true);
    standing.notify_all();
    go_on.wait(false);
    ThreadLink::start(stage, op, dtype, bytes);
  }
  std::atomic<bool> standing{false}, go_on{false};
};

TEST_CASE("what is given up while the coordinator's thread stands in a call is its owner's again") {
  const auto meeting = std::make_shared<test::Meeting>(1);
  auto owned = std::make_unique<StandingLink>(meeting, 0);
  StandingLink& link = *owned;
  CoordinatorLoop loop(std::move(owned), {}, std::make_shared<Bell>());
  std::thread runner([&] { loop.run(); });
  auto values = std::make_unique<std::vector<std::int32_t>>(1000, 1);
  const auto receipt = sum(loop, "x", *values);
  link.standing.wait(false);
  loop.give_up(std::make_exception_ptr(CommunicationError("the job stands still")));
  CHECK_THROWS_WITH(wait(receipt), "the job stands still");
  values.reset();  // AddressSanitizer sees it where it is touched now
  link.go_on.store(true);
  link.go_on.notify_all();
  runner.join();
  std::vector<std::int32_t> later{1};
  CHECK_THROWS_WITH(sum(loop, "x", later), "the job stands still");
  CHECK_THROWS_WITH(loop.desk().close(), "the job stands still");
}

}  // namespace
}  // namespace ronda::parts_test
