// Coordinators whose steps the test makes: all ranks in one thread, on a clock that stands still.
#include "support/catch.hpp"
#include "support/test_clock.hpp"

#include <ronda/collectives/host/reduction.hpp>
#include <ronda/coordinator/detail/descriptor.hpp>
#include <ronda/coordinator/detail/loop.hpp>
#include <ronda/core/error.hpp>

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ronda::steps_test {
namespace {

using Bytes = std::vector<std::byte>;

/// What the ranks exchange: a round for each operation, complete when all ranks have given their bytes.
class Exchange {
 public:
  using Combine = std::function<void(Bytes& all, const Bytes& mine)>;
  explicit Exchange(int ranks) : ranks_(ranks) {}

  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  void give(std::size_t round, Bytes mine, const Combine& combine) {
    Round& it = rounds_[round];
    if (it.given++ == 0)
      it.all = std::move(mine);
    else
      combine(it.all, mine);
  }
  /// Null: some rank has given nothing yet.
  [[nodiscard]] const Bytes* result(std::size_t round) const {
    const auto found = rounds_.find(round);
    return found == rounds_.end() || found->second.given < ranks_ ? nullptr : &found->second.all;
  }

 private:
  struct Round {
    int given = 0;
    Bytes all;
  };
  int ranks_;
  std::map<std::size_t, Round> rounds_;
};

class Operation final : public LinkOperation {
 public:
  void begin(const Exchange& exchange, std::size_t round, std::span<std::byte> to) {
    exchange_ = &exchange;
    round_ = round;
    to_ = to;
  }
  bool arrived() noexcept override { return exchange_->result(round_) != nullptr; }
  void finish() override { std::memcpy(to_.data(), exchange_->result(round_)->data(), to_.size()); }
  void wait() noexcept override { FAIL("a step waits for nothing"); }

 private:
  const Exchange* exchange_ = nullptr;
  std::size_t round_ = 0;
  std::span<std::byte> to_;
};

class Link final : public CoordinatorLink {
 public:
  Link(std::shared_ptr<Exchange> exchange, int rank, const Clock& clock)
      : exchange_(std::move(exchange)), rank_(rank), clock_(clock) {
    for (Bytes& stage : stages_) stage.resize(4096);
  }
  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return exchange_->ranks(); }
  [[nodiscard]] const Clock& clock() const noexcept override { return clock_; }
  [[nodiscard]] std::string name_of_rank(int rank) const override { return "rank " + std::to_string(rank); }
  LinkOperation& intersect(std::span<std::uint64_t> words, bool /*eager*/) override {
    return begin(agreeing_, std::as_writable_bytes(words), [](Bytes& all, const Bytes& mine) {
      for (std::size_t i = 0; i < all.size(); ++i) all[i] &= mine[i];
    });
  }
  LinkOperation& merge(std::span<std::byte> block) override {
    return begin(agreeing_, block, [](Bytes& all, const Bytes& mine) { merge_announcements(all, mine); });
  }
  std::span<std::byte> stage(int index) override { return stages_[static_cast<std::size_t>(index)]; }
  void start(int stage, ReduceOp op, DType dtype, std::size_t bytes) override {
    const auto index = static_cast<std::size_t>(stage);
    begin(reducing_[index], std::span(stages_[index]).first(bytes), [=](Bytes& all, const Bytes& mine) {
      combine(op, {all.data(), bytes / size_of(dtype), dtype}, mine.data());
    });
  }
  LinkOperation& reduction(int stage) override { return reducing_[static_cast<std::size_t>(stage)]; }
  std::unique_ptr<CoordinatorLink> split(int /*color*/, int /*key*/) override { return nullptr; }

 private:
  LinkOperation& begin(Operation& operation, std::span<std::byte> bytes, const Exchange::Combine& combine) {
    exchange_->give(round_, {bytes.begin(), bytes.end()}, combine);
    operation.begin(*exchange_, round_++, bytes);
    return operation;
  }

  std::shared_ptr<Exchange> exchange_;
  int rank_;
  const Clock& clock_;
  std::size_t round_ = 0;
  Operation agreeing_;
  std::array<Operation, stages> reducing_;
  std::array<Bytes, stages> stages_;
};

/// Coordinators of some ranks.
class Job {
 public:
  static constexpr double look = 1.0 / 16;  ///< seconds between two steps at rest

  explicit Job(int ranks, CoordinatorLoop::Options options = {}) : warnings_(static_cast<std::size_t>(ranks)) {
    options.tuning.fixed_gather = 0;
    const auto exchange = std::make_shared<Exchange>(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      options.on_warning = [&warnings = warnings_[static_cast<std::size_t>(rank)]](const std::string& text) {
        warnings.push_back(text);
      };
      loops_.push_back(std::make_unique<CoordinatorLoop>(std::make_unique<Link>(exchange, rank, clock_), options,
                                                         std::make_shared<Bell>()));
    }
    over_.resize(loops_.size());
  }
  CoordinatorLoop& operator[](std::size_t rank) { return *loops_[rank]; }
  [[nodiscard]] const std::vector<std::string>& warnings(std::size_t rank) const { return warnings_[rank]; }
  [[nodiscard]] bool over(std::size_t rank) const { return over_[rank]; }
  [[nodiscard]] double now() const noexcept { return clock_.now(); }

  /// The first `ranks` ranks make steps for so long, as often as there is something to do.
  void run(double seconds, std::size_t ranks = 1000) {
    const double end = clock_.now() + seconds;
    settle(ranks);
    while (clock_.now() < end) {
      clock_.advance(look);
      settle(ranks);
    }
  }
  SubmissionDesk::Receipt sum(std::size_t rank, const std::string& name, std::vector<std::int32_t>& values) {
    const Tensor tensor{std::span(values)};
    return loops_[rank]->desk().submit(name, {}, {&tensor, 1});
  }
  [[nodiscard]] static bool done(const SubmissionDesk::Receipt& receipt) {
    return receipt.submission->finished(receipt.number);
  }

 private:
  /// Until nothing moves at this time: a coordinator makes about three cycles from a tensor to its result.
  void settle(std::size_t ranks) {
    for (int round = 0; round < 50; ++round)
      for (std::size_t rank = 0; rank < std::min(ranks, loops_.size()); ++rank)
        if (!over_[rank]) over_[rank] = loops_[rank]->step(clock_.now()).over;
  }

  test::TestClock clock_;
  std::vector<std::vector<std::string>> warnings_;
  std::vector<std::unique_ptr<CoordinatorLoop>> loops_;
  std::vector<bool> over_;
};

TEST_CASE("coordinators reduce in steps that wait for nothing") {
  Job job(3);
  std::array<std::vector<std::int32_t>, 3> values{{{1, 10}, {2, 20}, {3, 30}}};
  std::vector<SubmissionDesk::Receipt> receipts;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    if (rank == 2) job.run(1);
    for (const auto& receipt : receipts) CHECK_FALSE(Job::done(receipt));
    receipts.push_back(job.sum(rank, "x", values[rank]));
  }
  job.run(1);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    REQUIRE(Job::done(receipts[rank]));
    CHECK(values[rank] == std::vector<std::int32_t>{6, 60});
  }
}

TEST_CASE("a late rank is reported once when its time is over, then after twice that time, and not before") {
  CoordinatorLoop::Options options;
  options.missing_warning = 2;
  Job job(2, options);
  std::vector<std::int32_t> early{1}, late{2};
  const auto first = job.sum(0, "x", early);
  job.run(2 + Job::look);  // at its end rank 0 begins a cycle, which rank 1 comes to at its next look
  CHECK(job.warnings(0).empty());
  job.run(Job::look);
  REQUIRE(job.warnings(0).size() == 1);
  CHECK(job.warnings(0)[0].find("for 2 s not by rank 1") != std::string::npos);
  CHECK(job.warnings(1) == job.warnings(0));
  job.run(2 - Job::look);
  CHECK(job.warnings(0).size() == 1);
  job.run(Job::look);
  CHECK(job.warnings(0).size() == 2);
  const auto second = job.sum(1, "x", late);
  job.run(10);
  CHECK(Job::done(first));
  CHECK(Job::done(second));
  CHECK(early == std::vector<std::int32_t>{3});
  CHECK(job.warnings(0).size() == 2);
}

TEST_CASE("what a rank does not submit is given up when the limit is over, and not before") {
  CoordinatorLoop::Options options;
  options.missing_warning = 0;
  options.missing_limit = 3;
  Job job(2, options);
  std::vector<std::int32_t> values{1};
  const auto receipt = job.sum(0, "x", values);
  job.run(3 + Job::look);
  CHECK_FALSE(Job::done(receipt));
  job.run(Job::look);
  REQUIRE(Job::done(receipt));
  CHECK_THROWS_WITH(receipt.submission->wait(receipt.number), Contains("for 3 s not by rank 1"));
  CHECK_FALSE(job.over(0));
}

TEST_CASE("a coordinator whose other rank makes no step waits, and ends at once when all is given up") {
  Job job(2);
  std::vector<std::int32_t> values{1};
  const auto receipt = job.sum(0, "x", values);
  job.run(1, 1);
  CHECK(job[0].step(job.now()).operation != nullptr);
  job[0].give_up(std::make_exception_ptr(CommunicationError("the job stands still")));
  CHECK_THROWS_WITH(receipt.submission->wait(receipt.number), "the job stands still");
  CHECK(job[0].step(job.now()).over);
}

TEST_CASE("a rank at rest begins a cycle when the bell rings, or after five milliseconds") {
  Job job(1);
  job.run(Job::look);
  const auto rest = job[0].step(job.now());
  CHECK(rest.operation == nullptr);
  CHECK(rest.listens);
  CHECK_FALSE(rest.over);
  CHECK(rest.at == job.now() + 5e-3);
  const std::uint64_t cycles = job[0].counters().cycles.load();
  std::vector<std::int32_t> values{1};
  const auto receipt = job.sum(0, "x", values);
  static_cast<void>(job[0].step(job.now()));
  CHECK(job[0].counters().cycles.load() == cycles + 1);
  job.run(1);
  CHECK(Job::done(receipt));
}

}  // namespace
}  // namespace ronda::steps_test
