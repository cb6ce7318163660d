// What a coordinator is made of, without MPI: the table of names, the tuner, and the whole loop between threads, one a
// rank, where ThreadSanitizer looks on.
#include "support/catch.hpp"

#include <ronda/collectives/coordinator/communicator_link.hpp>
#include <ronda/collectives/coordinator/loop.hpp>
#include <ronda/collectives/coordinator/tuner.hpp>
#include <ronda/collectives/reduction.hpp>
#include <ronda/runtime/core/error.hpp>

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

namespace ronda {
namespace {

// ---- announcements and names ----------------------------------------------------------------------------------------

Descriptor sum_of(std::int64_t count) {
  return {NamedKind::allreduce, ReduceOp::sum, 0, {{Shape{count}, DType::float32}}};
}
Announcement has(const std::string& name, std::int64_t count) {
  return {Announcement::What::tensors, name, sum_of(count)};
}
Announcement says(Announcement::What what) { return {what, {}, {}}; }

using Round = std::vector<std::vector<Announcement>>;

TEST_CASE("announcements are read as they were written, and only what fits is") {
  AnnouncementWriter writer(1024);
  const Descriptor several{
      NamedKind::broadcast, ReduceOp::sum, 3, {{Shape{2, 3}, DType::int8}, {Shape{}, DType::float64}}};
  REQUIRE(writer.add(Announcement::What::tensors, "a name", several));
  REQUIRE(writer.add(Announcement::What::left, "why", {}));
  int more = 0;
  while (writer.add(Announcement::What::tensors, "x", sum_of(7))) ++more;
  const auto announcements = read_announcements(writer.block());
  REQUIRE(announcements.size() == 2 + static_cast<std::size_t>(more));
  CHECK(announcements[0].name == "a name");
  CHECK(announcements[0].descriptor == several);
  CHECK(announcements[1].what == Announcement::What::left);
  CHECK(announcements.back().descriptor == sum_of(7));
  CHECK(read_announcements(AnnouncementWriter(1024).block()).empty());
}

TEST_CASE("the first to announce a name settles it; who has the same need not say so") {
  NameTable table({"rank 0 on a", "rank 1 on b", "rank 2 on c"});
  const auto changes = table.hear(Round{{}, {has("x", 3), has("y", 4)}, {has("x", 3)}});
  CHECK(changes.contested.empty());
  CHECK(changes.failures.empty());
  CHECK(table.find("x") == 0U);
  CHECK(table.find("y") == 1U);
  CHECK(!table.find("z"));
  CHECK(table[0].descriptor == sum_of(3));
}

TEST_CASE("a contested name waits for all ranks, then changes or fails") {
  NameTable table({"rank 0 on a", "rank 1 on b", "rank 2 on c"});
  table.hear(Round{{has("x", 3)}, {}, {}});
  auto changes = table.hear(Round{{}, {has("x", 5)}, {}});
  CHECK(changes.contested == std::vector<std::uint32_t>{0});
  CHECK(table[0].contested);
  changes = table.hear(Round{{has("x", 5)}, {}, {}});
  CHECK(table[0].contested);
  SECTION("all the same") {
    changes = table.hear(Round{{}, {}, {has("x", 5)}});
    CHECK(!table[0].contested);
    CHECK(table[0].descriptor == sum_of(5));
    CHECK(changes.failures.empty());
  }
  SECTION("one is different") {
    changes = table.hear(Round{{}, {}, {has("x", 6)}});
    REQUIRE(changes.failures.size() == 1);
    CHECK_THAT(changes.failures[0].text, Contains("'x'") && Contains("rank 0 on a, rank 1 on b: sum of float32 (5)") &&
                                             Contains("rank 2 on c: sum of float32 (6)"));
    CHECK(!table[0].contested);
  }
  SECTION("one has joined") {
    changes = table.hear(Round{{}, {}, {says(Announcement::What::joined)}});
    CHECK(!table[0].contested);
    CHECK(changes.failures.empty());
  }
}

TEST_CASE("all have joined when the last has, and begin anew; who has closed keeps nobody waiting") {
  NameTable table({"rank 0 on a", "rank 1 on b", "rank 2 on c"});
  const Announcement joined = says(Announcement::What::joined), closed = says(Announcement::What::closed);
  CHECK(!table.hear(Round{{joined}, {}, {}}).all_joined);
  CHECK(table.has_joined(0));
  CHECK(!table.hear(Round{{}, {}, {joined}}).all_joined);
  CHECK(table.hear(Round{{}, {joined}, {}}).all_joined);
  CHECK(table.last_to_join() == 1);
  CHECK(!table.anybody_joined());
  CHECK(!table.hear(Round{{}, {closed}, {}}).all_joined);
  CHECK(table.first_closed() == 1);
  CHECK(table.hear(Round{{joined}, {}, {joined}}).all_joined);
  CHECK(table.hear(Round{{closed}, {}, {closed}}).all_closed);
}

TEST_CASE("there are only so many names") {
  NameTable table({"rank 0 on a"});
  for (std::size_t i = 0; i < NameTable::capacity; ++i) table.hear(Round{{has("n" + std::to_string(i), 1)}});
  const auto changes = table.hear(Round{{has("one more", 1)}});
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

/// Where the ranks of a group of threads meet.
struct Meeting {
  explicit Meeting(int ranks)
      : all(ranks), words(static_cast<std::size_t>(ranks)), blocks(words.size()), stages(words.size()) {}
  std::barrier<> all;
  std::vector<std::vector<std::uint64_t>> words;  ///< by rank
  std::vector<std::vector<std::byte>> blocks;
  std::vector<std::array<std::vector<std::byte>, CoordinatorLink::stages>> stages;
  std::mutex door;
  std::map<int, std::shared_ptr<Meeting>> split_off;  ///< by colour
};

class ThreadLink final : public CoordinatorLink {
 public:
  ThreadLink(std::shared_ptr<Meeting> meeting, int rank) : meeting_(std::move(meeting)), rank_(rank) {
    for (auto& stage : mine(meeting_->stages)) stage.resize(4096);
  }
  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return static_cast<int>(meeting_->words.size()); }
  [[nodiscard]] std::vector<std::string> rank_names() const override {
    std::vector<std::string> names;
    for (int rank = 0; rank < size(); ++rank) names.push_back("rank " + std::to_string(rank));
    return names;
  }

  void intersect(std::span<std::uint64_t> words, bool /*eager*/) override {
    mine(meeting_->words).assign(words.begin(), words.end());
    meet();
    for (const auto& other : meeting_->words)
      for (std::size_t i = 0; i < words.size(); ++i) words[i] &= other[i];
    meet();
  }
  std::span<const std::byte> gather(std::span<const std::byte> block) override {
    mine(meeting_->blocks).assign(block.begin(), block.end());
    meet();
    gathered_.clear();
    for (const auto& other : meeting_->blocks) gathered_.insert(gathered_.end(), other.begin(), other.end());
    meet();
    return gathered_;
  }
  [[nodiscard]] std::span<std::byte> stage(int index) override {
    return mine(meeting_->stages)[static_cast<std::size_t>(index)];
  }
  void start(int stage, ReduceOp op, DType dtype, std::size_t bytes) override {
    started_[static_cast<std::size_t>(stage)] = {op, dtype, bytes};
  }
  void finish(int stage) override {
    const auto index = static_cast<std::size_t>(stage);
    const Started& started = started_[index];
    const std::size_t count = started.bytes / size_of(started.dtype);
    meet();
    auto result = meeting_->stages[0][index];
    for (std::size_t rank = 1; rank < meeting_->stages.size(); ++rank)
      combine(started.op, {result.data(), count, started.dtype}, meeting_->stages[rank][index].data());
    meet();
    mine(meeting_->stages)[index] = result;
  }
  std::unique_ptr<CoordinatorLink> split(int color, int key) override {
    const std::int32_t said[2] = {color, key};
    const auto all = gather(std::as_bytes(std::span(said)));
    std::vector<std::pair<int, int>> members;
    for (int rank = 0; rank < size(); ++rank) {
      std::int32_t other[2];
      std::memcpy(other, all.data() + static_cast<std::size_t>(rank) * sizeof(other), sizeof(other));
      if (other[0] == color) members.emplace_back(other[1], rank);
    }
    std::sort(members.begin(), members.end());
    const auto place = std::find(members.begin(), members.end(), std::pair{key, rank_});
    std::shared_ptr<Meeting> group;
    {
      const std::lock_guard lock(meeting_->door);
      auto& known = meeting_->split_off[color];
      if (known == nullptr) known = std::make_shared<Meeting>(static_cast<int>(members.size()));
      group = known;
    }
    meet();
    return std::make_unique<ThreadLink>(std::move(group), static_cast<int>(place - members.begin()));
  }

 private:
  struct Started {
    ReduceOp op = ReduceOp::sum;
    DType dtype = DType::float32;
    std::size_t bytes = 0;
  };
  template <class Value>
  Value& mine(std::vector<Value>& values) const {
    return values[static_cast<std::size_t>(rank_)];
  }
  void meet() { meeting_->all.arrive_and_wait(); }

  std::shared_ptr<Meeting> meeting_;
  int rank_;
  std::vector<std::byte> gathered_;
  std::array<Started, stages> started_;
};

/// Runs `body` for every rank of a world of threads, each with a loop of its own, and closes these.
void with_loops(int ranks, const std::function<void(CoordinatorLoop&)>& body) {
  const auto meeting = std::make_shared<Meeting>(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      CoordinatorLoop loop(std::make_unique<ThreadLink>(meeting, rank), {}, std::make_shared<Bell>());
      std::thread runner([&] { loop.run(); });
      body(loop);
      loop.desk().close();
      runner.join();
    });
  for (auto& thread : threads) thread.join();
}

SubmissionDesk::Receipt sum(CoordinatorLoop& loop, const std::string& name, std::vector<std::int32_t>& values) {
  const Tensor tensor{std::span(values)};
  return loop.desk().submit(name, {}, {&tensor, 1});
}
void wait(const SubmissionDesk::Receipt& receipt) { receipt.submission->wait(receipt.number); }

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

}  // namespace
}  // namespace ronda
