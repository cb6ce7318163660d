// NCCL's communicator against a stand-in that writes down what is called and answers as it is told to; ranks are
// threads, devices too. What the real library makes of the calls only a GPU shows.
#include "support/catch.hpp"
#include "support/fake_device.hpp"
#include "support/fake_nccl.hpp"
#include "support/operands.hpp"
#include "support/rank_threads.hpp"

#include <ronda/collectives/nccl/clique.hpp>
#include <ronda/collectives/nccl/nccl_plan.hpp>
#include <ronda/collectives/watch/record_view.hpp>
#include <ronda/collectives/watch/watchdog_thread.hpp>
#include <ronda/core/error.hpp>

#include <atomic>
#include <barrier>
#include <chrono>
#include <filesystem>
#include <future>
#include <map>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <utility>

namespace ronda::nccl_test {
namespace {

using nccl::Clique;
using nccl::Status;
using test::FakeDevice;
using test::FakeNccl;
using test::FakeStream;
using test::floats_in;

/// Where threads give each other texts.
class Meeting {
 public:
  explicit Meeting(int ranks) : texts_(static_cast<std::size_t>(ranks)), come_(ranks) {}
  Clique::Gather of(int rank) {
    return [this, rank](std::string_view text) {
      texts_[static_cast<std::size_t>(rank)] = text;
      come_.arrive_and_wait();
      auto all = texts_;
      come_.arrive_and_wait();
      return all;
    };
  }

 private:
  std::vector<std::string> texts_;
  std::barrier<> come_;
};

/// The message of the Failure that `work` throws, or nothing. For threads, in which Catch must not assert.
template <class Failure>
std::string thrown_by(const std::function<void()>& work) {
  try {
    work();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return {};
}

/// A rank: its library, its device, and what connects it.
struct Rank {
  std::shared_ptr<FakeNccl> nccl;
  std::shared_ptr<DeviceLanes> lanes;
  Clique::Place place;
  std::shared_ptr<Clique> clique;
  std::string error;

  void connect() {
    error = thrown_by<CommunicationError>([this] { clique = std::make_shared<Clique>(nccl, lanes, place); });
  }
  FakeStream& stream() { return dynamic_cast<FakeStream&>(*lanes->collectives); }
};

class Ranks {
 public:
  explicit Ranks(int count, double deadline = 60) : meeting_(count) {
    for (int rank = 0; rank < count; ++rank) {
      auto device = std::make_shared<FakeDevice>("GPU-" + std::to_string(rank));
      ranks_.push_back({std::make_shared<FakeNccl>(meeting_.of(rank)),
                        std::make_shared<DeviceLanes>(device),
                        Clique::Place{.rank = rank, .names = {}, .gather = meeting_.of(rank), .deadline = deadline},
                        nullptr,
                        {}});
      for (int other = 0; other < count; ++other)
        ranks_.back().place.names.push_back("rank " + std::to_string(other) + " on host" + std::to_string(other));
    }
  }
  Rank& operator[](int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  /// What `body` returns, by rank. It makes no assertions: Catch's are for one thread.
  template <class Body>
  auto on_all(Body&& body) {
    std::vector<decltype(body(ranks_[0]))> results(ranks_.size());
    test::on_threads(size(), [&](int rank) { results[static_cast<std::size_t>(rank)] = body((*this)[rank]); });
    return results;
  }
  void connect() {
    test::on_threads(size(), [this](int rank) { (*this)[rank].connect(); });
  }
  /// Everybody threw the same, which begins so, and has given up what it had.
  void expect_refused(const std::string& beginning) {
    for (Rank& rank : ranks_) {
      INFO(rank.error);
      CHECK(rank.clique == nullptr);
      CHECK(rank.error.starts_with(beginning));
      CHECK(rank.error == ranks_[0].error);
      CHECK(rank.nccl->count("abort") == rank.nccl->count("init"));
    }
  }

 private:
  Meeting meeting_;
  std::vector<Rank> ranks_;
};

// Connecting ----------------------------------------------------------------------------------------------------------

TEST_CASE("ranks connect, however long it takes, and part without a word to each other") {
  for (const int looks : {0, 1, 30}) {
    Ranks ranks(3);
    for (int rank = 0; rank < 3; ++rank) {
      ranks[rank].nccl->start.status = looks == 0 ? Status::success : Status::in_progress;
      ranks[rank].nccl->looks_until_over = looks * rank;
    }
    ranks.connect();
    CHECK(ranks[0].nccl->calls() == std::vector<std::string>{"unique id", "init 0 of 3"});
    CHECK(ranks[2].nccl->calls() == std::vector<std::string>{"init 2 of 3"});
    for (int rank = 0; rank < 3; ++rank) {
      CHECK(ranks[rank].error.empty());
      ranks[rank].clique.reset();  // one after the other: none waits
      CHECK(ranks[rank].nccl->calls().back() == "abort");
      CHECK(ranks[rank].nccl->count("abort") == 1);
    }
  }
}

TEST_CASE("where one rank cannot start, all stop and name it") {
  Ranks ranks(3);
  ranks[0].nccl->start.status = Status::in_progress;
  ranks[0].nccl->looks_until_over = -1;  // it waits for the one that never comes
  ranks[2].nccl->start = {Status::failed, "unhandled system error"};
  ranks.connect();
  ranks.expect_refused("rank 2 on host2: NCCL's start failed: unhandled system error");
}

TEST_CASE("whose own failure it is is blamed, not who heard of it") {
  Ranks ranks(3);
  ranks[0].nccl->start = {Status::remote_error, "remote process exited"};
  ranks[1].nccl->start = {Status::failed, "no network"};
  ranks.connect();
  ranks.expect_refused("rank 1 on host1: NCCL's start failed: no network");
}

TEST_CASE("a start that fails after it was begun is noticed") {
  Ranks ranks(2);
  for (int rank = 0; rank < 2; ++rank) ranks[rank].nccl->start.status = Status::in_progress;
  ranks[0].nccl->looks_until_over = -1;
  ranks[1].nccl->trouble = Status::failed;
  ranks.connect();
  ranks.expect_refused("rank 1 on host1: NCCL's start failed: trouble");
}

TEST_CASE("without an identifier nobody begins") {
  Ranks ranks(2);
  ranks[0].nccl->identifier = {Status::failed, "no interface"};
  ranks.connect();
  ranks.expect_refused("rank 0 on host0: NCCL gives no identifier: no interface");
  CHECK(ranks[1].nccl->calls().empty());
}

TEST_CASE("a rank that is not ready by the deadline ends it for all, by name") {
  Ranks ranks(3, 0.05);
  ranks[1].nccl->start.status = Status::in_progress;
  ranks[1].nccl->looks_until_over = -1;
  ranks.connect();
  ranks.expect_refused("NCCL's start is not over after 0 s on rank 1 on host1");
}

// Memory --------------------------------------------------------------------------------------------------------------

TEST_CASE("memory is zeroed, known to NCCL, and there as long as either side needs it") {
  for (const bool buffer_first : {true, false}) {
    Ranks ranks(2);
    ranks.connect();
    auto allocated = ranks.on_all([](Rank& rank) {
      Message note;
      Buffer buffer = rank.clique->allocate(4096, note);
      return std::pair(std::move(buffer), note);
    });
    for (int rank = 0; rank < 2; ++rank) {
      auto& [buffer, note] = allocated[static_cast<std::size_t>(rank)];
      CHECK(note.empty());
      CHECK(buffer.device() == Device{DeviceKind::cuda, 0});
      CHECK(std::ranges::all_of(std::span(buffer.data(), 4096), [](std::byte byte) { return byte == std::byte{0}; }));
      CHECK(ranks[rank].nccl->count("open window of 4096") == 1);
      if (buffer_first) buffer = {};
      CHECK(ranks[rank].nccl->memory_in_use() == 1);
      ranks[rank].clique.reset();
      CHECK(ranks[rank].nccl->memory_in_use() == (buffer_first ? 0 : 1));
      buffer = {};
      CHECK(ranks[rank].nccl->memory_in_use() == 0);
    }
  }
}

TEST_CASE("memory that one rank cannot have is refused on all") {
  Ranks ranks(2);
  ranks.connect();
  ranks[1].nccl->memory = {Status::failed, "out of memory"};
  const auto errors = ranks.on_all([](Rank& rank) {
    Message note;
    return thrown_by<ResourceError>([&] { rank.clique->allocate(4096, note); });
  });
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(errors[static_cast<std::size_t>(rank)].starts_with("rank 1 on host1: "));
    CHECK(ranks[rank].nccl->memory_in_use() == 0);
  }
}

TEST_CASE("memory that NCCL does not want to know beforehand is used all the same, by all alike") {
  Ranks ranks(2);
  ranks.connect();
  ranks[1].nccl->window = {Status::failed, "invalid usage"};
  const auto allocated = ranks.on_all([](Rank& rank) {
    Message note;
    const std::size_t bytes = rank.clique->allocate(4096, note).bytes();
    return std::pair(bytes, note);
  });
  for (const auto& [bytes, note] : allocated) {
    CHECK(bytes == 4096);
    CHECK(note.text().find("rank 1 on host1: making memory known to NCCL failed: invalid usage") != std::string::npos);
  }
  CHECK(ranks[0].nccl->count("close window") == 1);
  CHECK(ranks[1].nccl->count("close window") == 0);
  CHECK(ranks[0].nccl->count("abort") == 0);
}

TEST_CASE("a window that is still being opened when NCCL says it is open is waited for") {
  Ranks ranks(2);
  ranks.connect();
  for (int rank = 0; rank < 2; ++rank) {
    ranks[rank].nccl->window.status = Status::in_progress;
    ranks[rank].nccl->windows_look_open = true;
    ranks[rank].nccl->looks_until_over = 20;
  }
  const auto notes = ranks.on_all([](Rank& rank) {
    Message note;
    static_cast<void>(rank.clique->allocate(4096, note));
    return note;
  });
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(notes[static_cast<std::size_t>(rank)].empty());
    CHECK(ranks[rank].nccl->state(reinterpret_cast<nccl::Comm>(ranks[rank].nccl.get())).status == Status::success);
  }
}

TEST_CASE("a window that never opens ends it for all") {
  Ranks ranks(2, 0.05);
  ranks.connect();
  ranks[0].nccl->window.status = Status::in_progress;
  ranks[0].nccl->looks_until_over = -1;
  const auto errors = ranks.on_all([](Rank& rank) {
    Message note;
    return thrown_by<CommunicationError>([&] { rank.clique->allocate(4096, note); });
  });
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(errors[static_cast<std::size_t>(rank)].find("on rank 0 on host0") != std::string::npos);
    CHECK(ranks[rank].nccl->count("abort") == 1);
  }
}

TEST_CASE("memory that has gone on all ranks is given back at the next allocation") {
  Ranks ranks(2);
  ranks.connect();
  std::vector<Buffer> kept(2);
  const auto allocate = [](Rank& rank) {
    Message note;
    return rank.clique->allocate(4096, note);
  };
  kept = ranks.on_all(allocate);
  for (int i = 0; i < 10; ++i) ranks.on_all(allocate);  // and dropped at once
  kept[1] = {};                                         // of one rank alone
  ranks.on_all(allocate);
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(ranks[rank].nccl->count("close window") == 10);
    CHECK(ranks[rank].nccl->memory_in_use() == 2);
  }
  kept[0] = {};
  ranks.on_all(allocate);
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(ranks[rank].nccl->count("close window") == 12);
    CHECK(ranks[rank].nccl->memory_in_use() == 1);
  }
}

/// A way to the others that breaks, as MPI's may, at the given use of it.
Clique::Gather breaking_at(int use) {
  return [left = use](std::string_view text) mutable {
    if (--left == 0) throw CommunicationError("the way to the others broke");
    return std::vector<std::string>{std::string(text)};
  };
}

TEST_CASE("where the ranks lose each other while NCCL connects, it is aborted before what it writes to is gone") {
  Ranks ranks(1);
  ranks[0].nccl->start.status = Status::in_progress;
  ranks[0].nccl->looks_until_over = -1;
  ranks[0].place.gather = breaking_at(2);
  ranks.connect();
  CHECK(ranks[0].error == "the way to the others broke");
  CHECK(ranks[0].nccl->count("abort") == 1);
}

TEST_CASE("where the ranks lose each other while a window opens, NCCL still writes to memory that is there") {
  Ranks ranks(1);
  ranks[0].place.gather = breaking_at(5);  // two to connect, one for the memory
  ranks.connect();
  REQUIRE(ranks[0].clique != nullptr);
  ranks[0].nccl->window.status = Status::in_progress;
  ranks[0].nccl->looks_until_over = -1;
  Message note;
  REQUIRE(thrown_by<CommunicationError>([&] {
            for (;;) static_cast<void>(ranks[0].clique->allocate(4096, note));
          }) == "the way to the others broke");
  CHECK(ranks[0].nccl->count("open window") == 1);
  CHECK(ranks[0].nccl->memory_in_use() == 1);
  ranks[0].clique.reset();
  CHECK(ranks[0].nccl->count("abort") == 1);
  CHECK(ranks[0].nccl->memory_in_use() == 0);
}

// Collectives ---------------------------------------------------------------------------------------------------------

template <class T>
Tensor numbers_in(const Buffer& buffer, std::size_t count) {
  return {{Shape{static_cast<std::int64_t>(count)}, dtype_of<T>, {}}, buffer.data(), buffer.device()};
}

/// Runs on each rank, twice, what `make` plans for memory of `count` operands. Returns how many numbers are not what
/// they should be, which `count_wrong` tells of one rank.
template <class T, class Make, class CountWrong>
std::size_t wrong_after(int size, std::size_t count, ReduceOp op, Make&& make, CountWrong&& count_wrong) {
  Ranks ranks(size);
  ranks.connect();
  const auto wrong = ranks.on_all([&](Rank& rank) {
    const Buffer memory = rank.lanes->context->allocate(count * sizeof(T));
    const std::span values(reinterpret_cast<T*>(memory.data()), count);
    const auto collective = make(rank, numbers_in<T>(memory, count));
    if (collective->algorithm() != "nccl") throw std::logic_error("planned by another than nccl");
    std::size_t mine = 0;
    for (int run = 0; run < 2; ++run) {
      test::fill_operands<T>(op, values, rank.place.rank);
      collective->start().wait();
      mine += count_wrong(rank.place.rank, std::span<const T>(values));
    }
    return mine;
  });
  return std::accumulate(wrong.begin(), wrong.end(), std::size_t{0});
}

/// How many of `values`, from place `begin` on, are not what `owner` gave.
std::size_t count_not_from(int owner, std::span<const float> values, Range range) {
  std::size_t wrong = 0;
  for (std::size_t i = range.begin; i < range.end; ++i)
    wrong += values[i] == test::small<float>(test::operand<float>(ReduceOp::sum, i, owner)) ? 0 : 1;
  return wrong;
}

TEMPLATE_TEST_CASE("an allreduce gives every rank the result", "", float, double, BFloat16, std::int32_t) {
  for (const int size : {1, 2, 3})
    for (const ReduceOp op : test::all_operations)
      for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}}) {
        const auto wrong = [&] {
          return wrong_after<TestType>(
              size, count, op,
              [&](Rank& rank, const Tensor& tensor) {
                return nccl::plan(rank.clique, AllreduceSpec{.tensors = {tensor}, .op = op}, nullptr);
              },
              [&](int, std::span<const TestType> values) { return test::count_wrong<TestType>(op, values, size); });
        };
        if (nccl::loses_nan(op, dtype_of<TestType>))
          CHECK_THROWS_WITH(wrong(), Contains("pass over NaN"));
        else
          CHECK(wrong() == 0);
      }
}

TEST_CASE("a root's numbers go to all") {
  CHECK(wrong_after<float>(
            3, 100, ReduceOp::sum,
            [](Rank& rank, const Tensor& tensor) {
              return nccl::plan(rank.clique, BroadcastSpec{tensor, 1}, nullptr);
            },
            [](int, std::span<const float> values) {
              return count_not_from(1, values, {0, values.size()});
            }) == 0);
}

const std::vector<std::vector<Range>> ways_to_cut{{{0, 40}, {40, 80}, {80, 120}}, {{0, 7}, {7, 7}, {7, 120}}};

TEST_CASE("parts go to all, equal and unequal") {
  for (const auto& parts : ways_to_cut)
    CHECK(wrong_after<float>(
              3, 120, ReduceOp::sum,
              [&](Rank& rank, const Tensor& tensor) {
                return nccl::plan(rank.clique, AllgatherSpec{tensor}, parts, nullptr);
              },
              [&](int, std::span<const float> values) {
                std::size_t wrong = 0;
                for (int owner = 0; owner < 3; ++owner)
                  wrong += count_not_from(owner, values, parts[static_cast<std::size_t>(owner)]);
                return wrong;
              }) == 0);
}

TEST_CASE("every rank gets its part of the sum, equal and unequal") {
  for (const auto& parts : ways_to_cut)
    CHECK(wrong_after<float>(
              3, 120, ReduceOp::sum,
              [&](Rank& rank, const Tensor& tensor) {
                return nccl::plan(rank.clique, ReduceScatterSpec{tensor}, parts, nullptr);
              },
              [&](int rank, std::span<const float> values) {
                const Range mine = parts[static_cast<std::size_t>(rank)];
                return test::count_wrong<float>(ReduceOp::sum, values.subspan(mine.begin, mine.size()), 3, mine.begin);
              }) == 0);
}

TEST_CASE("several tensors are queued as one") {
  Ranks ranks(2);
  ranks.connect();
  const auto sums = ranks.on_all([](Rank& rank) {
    const Buffer memory = rank.lanes->context->allocate(4096);
    *reinterpret_cast<double*>(memory.data() + 2048) = rank.place.rank + 1;
    const Tensor control({Shape{1}, DType::float64, {}}, memory.data() + 2048, memory.device());
    const auto collective = nccl::plan(
        rank.clique, AllreduceSpec{.tensors = {floats_in(memory, 100), floats_in(memory, 0)}, .exact = {control}},
        nullptr);
    collective->start().wait();
    return *reinterpret_cast<double*>(memory.data() + 2048);
  });
  CHECK(sums == std::vector<double>{3, 3});
  for (int rank = 0; rank < 2; ++rank) {
    const auto calls = ranks[rank].nccl->calls();
    REQUIRE(calls.size() >= 4);
    const std::vector<std::string> last(calls.end() - 4, calls.end());
    CHECK(last == std::vector<std::string>{"group start", "all reduce 100", "all reduce 1", "group end"});
  }
}

TEST_CASE("memory that NCCL opened no window for without an error is noted on all ranks") {
  struct OpensNone final : FakeNccl {
    nccl::Answer open_window(nccl::Comm, void*, std::size_t, nccl::Window& opened) override {
      opened = nullptr;
      return {};
    }
  };
  Ranks ranks(2);
  ranks[1].nccl = std::make_shared<OpensNone>();
  ranks.connect();
  const auto notes = ranks.on_all([](Rank& rank) {
    Message note;
    static_cast<void>(rank.clique->allocate(4096, note));
    return note;
  });
  for (const Message& note : notes)
    CHECK(note.text().find("no symmetric window on rank 1 on host1") != std::string::npos);
}

TEST_CASE("a group with a call that fails is ended before the communicator is") {
  struct FailsInGroups final : FakeNccl {
    nccl::Answer all_reduce(nccl::Comm comm, std::byte* data, std::size_t count, DType dtype, ReduceOp op,
                            Stream& stream) override {
      static_cast<void>(FakeNccl::all_reduce(comm, data, count, dtype, op, stream));
      return {Status::failed, "invalid argument"};
    }
  };
  Ranks ranks(1);
  ranks[0].nccl = std::make_shared<FailsInGroups>();
  ranks.connect();
  const Buffer memory = ranks[0].lanes->context->allocate(4096);
  const auto collective =
      nccl::plan(ranks[0].clique, AllreduceSpec{.tensors = {floats_in(memory, 100), floats_in(memory, 10)}}, nullptr);
  CHECK_THROWS_AS(collective->start(), CommunicationError);
  const auto calls = ranks[0].nccl->calls();
  const std::vector<std::string> last(calls.end() - 4, calls.end());
  CHECK(last == std::vector<std::string>{"group start", "all reduce 100", "group end", "abort"});
}

/// A rank whose library only writes down.
struct Alone {
  explicit Alone(double deadline = 60, std::shared_ptr<Watchdog> watchdog = nullptr, Ledger* ledger = nullptr)
      : ranks(1, deadline) {
    rank().nccl = std::make_shared<FakeNccl>();
    rank().place.watchdog = std::move(watchdog);
    rank().place.ledger = ledger;
    rank().connect();
    memory = rank().lanes->context->allocate(4096);
    collective =
        nccl::plan(rank().clique, AllreduceSpec{.tensors = {floats_in(memory, 1000)}, .label = "bucket 3"}, nullptr);
  }
  Rank& rank() { return ranks[0]; }

  Ranks ranks;
  Buffer memory;
  std::unique_ptr<Collective> collective;
};

TEST_CASE("the stream waits for the gradients, not the host") {
  Alone alone;
  FakeStream computing({DeviceKind::cuda, 0});
  computing.hang(true);
  computing.queue([] {});
  const Event reduced = alone.collective->start(computing.record());
  CHECK(alone.rank().nccl->count("all reduce 1000") == 1);  // queued
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK_FALSE(reduced.ready());
  FakeStream other({DeviceKind::cuda, 0});
  other.wait(reduced);  // nor does the host here
  const Event updated = other.record();
  CHECK_FALSE(updated.ready());
  computing.hang(false);
  updated.wait();
  CHECK(reduced.ready());
}

TEST_CASE("what a call answers later is waited for, up to the deadline") {
  for (const bool ends : {true, false}) {
    Alone alone(ends ? 60 : 0.05);
    alone.rank().nccl->queueing.status = Status::in_progress;
    alone.rank().nccl->looks_until_over = ends ? 10 : -1;
    if (ends)
      alone.collective->start().wait();
    else
      CHECK_THROWS_AS(alone.collective->start(), CommunicationError);
    CHECK(alone.rank().nccl->count("abort") == (ends ? 0 : 1));
  }
}

TEST_CASE("a call that fails ends it, and so does what has come up since the last") {
  for (const bool beside : {true, false}) {
    Alone alone;
    alone.collective->start().wait();
    if (beside)
      alone.rank().nccl->trouble = Status::failed;
    else
      alone.rank().nccl->queueing = {Status::failed, "trouble"};
    for (int again = 0; again < 2; ++again) {
      std::string error;
      try {
        alone.collective->start();
      } catch (const CommunicationError& failure) {
        error = failure.what();
      }
      CHECK(error.starts_with("rank 0 on host0: NCCL 2.28.9 reports trouble; NCCL_DEBUG=INFO"));
    }
    CHECK(alone.rank().nccl->count("abort") == 1);
  }
}

// The watchdog --------------------------------------------------------------------------------------------------------

namespace fs = std::filesystem;

/// Ranks of one process with a watchdog and a clique each.
class Watched {
 public:
  explicit Watched(int ranks, double timeout)
      : folder_(fs::temp_directory_path() / ("ronda-nccl-" + std::to_string(::getpid()))) {
    stalls_.resize(static_cast<std::size_t>(ranks));
    ledgers_.resize(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      auto recorder = std::make_shared<Recorder>(folder_, false, rank, ranks);
      Ledger& ledger = ledgers_[static_cast<std::size_t>(rank)];
      ledger.recorder = recorder;
      auto& stall = stalls_[static_cast<std::size_t>(rank)];
      dogs_.push_back(std::make_shared<Watchdog>(
          recorder, Watchdog::Options{timeout, true, [&stall](const Stall& told) { stall.set_value(told); }}));
      threads_.push_back(std::make_unique<WatchdogThread>(dogs_.back()));
      cliques_.push_back(std::make_unique<Alone>(60, dogs_.back(), &ledger));
    }
    meet();
  }
  Watched(const Watched&) = delete;
  ~Watched() {
    threads_.clear();
    cliques_.clear();
    dogs_.clear();
    ledgers_.clear();
    fs::remove_all(folder_);
  }
  Alone& operator[](int rank) { return *cliques_[static_cast<std::size_t>(rank)]; }
  FakeNccl& nccl(int rank) { return *(*this)[rank].rank().nccl; }
  Ledger& ledger(int rank) { return ledgers_[static_cast<std::size_t>(rank)]; }
  Stall stall(int rank) { return stalls_[static_cast<std::size_t>(rank)].get_future().get(); }

 private:
  /// On one host, whose name is left out.
  void meet() {
    constexpr std::uint64_t job = 42;
    HostNames hosts;
    std::map<int, std::string> records;
    const int ranks = static_cast<int>(dogs_.size());
    for (int rank = 0; rank < ranks; ++rank) {
      hosts.add({});
      records[rank] = record_path(folder_, rank).string();
      ledger(rank).recorder->met(rank, ranks, job);
    }
    for (const auto& dog : dogs_) dog->meet(hosts, records, nullptr);
  }

  fs::path folder_;
  std::vector<std::promise<Stall>> stalls_;
  std::vector<Ledger> ledgers_;
  std::vector<std::shared_ptr<Watchdog>> dogs_;
  std::vector<std::unique_ptr<WatchdogThread>> threads_;
  std::vector<std::unique_ptr<Alone>> cliques_;
};

TEST_CASE("an error that comes up while the device works ends the job, by name, and is told once") {
  Watched job(3, 60);
  job.nccl(0).trouble = Status::remote_error;
  job.nccl(1).trouble = Status::failed;  // whose own it is
  const Stall speaker = job.stall(1);
  CHECK(speaker.speaks);
  CHECK(
      speaker.message.starts_with("rank 0 on host0: NCCL 2.28.9 reports trouble"));  // its place in a clique of its own
  CHECK_FALSE(job.stall(0).speaks);
  CHECK_FALSE(job.stall(2).speaks);
  for (int rank = 0; rank < 3; ++rank) {
    while (job.nccl(rank).count("abort") == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK_THROWS_AS(job[rank].collective->start(), CommunicationError);
    CHECK(job.nccl(rank).count("abort") == 1);
  }
}

/// A run whose kernel waits for the other ranks until this object goes.
class HangingRun final : public Completion {
 public:
  HangingRun(Rank& rank, Recorder& recorder) : stream_(rank.stream()) {
    recorder.set_step(17);
    const std::uint64_t record = rank.clique->begin_run({Kind::allreduce, "bucket 3", "nccl", 1000});
    const Event began = rank.stream().record();
    rank.stream().wait(Event(*this, 1));
    rank.clique->watch_run(record, began, rank.stream().record());
  }
  HangingRun(const HangingRun&) = delete;
  ~HangingRun() {
    over_ = true;
    over_.notify_all();
    stream_.synchronize();
  }
  bool poll(std::uint64_t) override { return true; }
  void wait(std::uint64_t) override {}
  bool hold(Stream& stream, std::uint64_t) override {
    dynamic_cast<FakeStream&>(stream).queue([this] { over_.wait(false); });
    return true;
  }

 private:
  FakeStream& stream_;
  std::atomic<bool> over_ = false;
};

TEST_CASE("a collective that stands still on the device is a stall like any other") {
  Watched job(2, 0.5);
  for (int rank = 0; rank < 2; ++rank) job[rank].collective->start().wait();
  const HangingRun run(job[0].rank(), *job.ledger(0).recorder);
  const Stall stall = job.stall(0);
  INFO(stall.message);
  CHECK(stall.speaks);
  CHECK(
      stall.message.starts_with("bucket 3 by nccl of step 17 has stood still for 0.5 s, waiting for rank 1: it is at"));
}

TEST_CASE("an error names the collective that was in flight") {
  Watched job(1, 60);
  const HangingRun run(job[0].rank(), *job.ledger(0).recorder);
  while (Recorder::get(job.ledger(0).recorder->file().head.still) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  job.nccl(0).trouble = Status::failed;
  const Stall stall = job.stall(0);
  INFO(stall.message);
  CHECK(stall.message.ends_with("bucket 3 by nccl of step 17 was in flight"));
}

TEST_CASE("work of its own that takes long is no stall, and what is over is written down") {
  Watched job(1, 0.4);
  FakeStream computing({DeviceKind::cuda, 0});
  computing.hang(true);
  computing.queue([] {});
  const Event reduced = job[0].collective->start(computing.record());
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  CHECK(job.nccl(0).count("abort") == 0);
  computing.hang(false);
  reduced.wait();
  const auto state = [&] { return state_of(job.ledger(0).recorder->file(), 10); };
  while (state().trail.back().outcome() != Outcome::done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(state().trail.back().label.view() == "bucket 3");
}

TEST_CASE("what is recorded for a graph is not watched: the graph's replays are") {
  Watched job(1, 60);
  job[0].rank().stream().set_recording(true);
  job[0].collective->start();
  CHECK(job.ledger(0).number == 0);
  job[0].rank().stream().set_recording(false);
  job[0].collective->start().wait();
  CHECK(job.ledger(0).number == 1);
}

TEST_CASE("a replay counts as one collective, and one that stands still is a stall") {
  Watched job(2, 0.2);
  Rank& rank = job[0].rank();
  std::atomic<bool> others_came = true;
  const auto forgotten = std::make_shared<std::atomic<bool>>(false);
  rank.nccl->when_aborted = [forgotten] { forgotten->wait(false); };  // NCCL's call waits for recordings to go
  FakeStream computing({DeviceKind::cuda, 0});
  auto step = nccl::watched(rank.clique,
                            rank.lanes->context->record(computing,
                                                        [&] {
                                                          computing.wait(job[0].collective->start(computing.record()));
                                                          computing.queue([&] { others_came.wait(false); });
                                                        }),
                            "the recorded step");
  CHECK(job.ledger(0).number == 0);
  const auto last = [&] { return state_of(job.ledger(0).recorder->file(), 10).trail.back(); };
  for (const std::uint64_t number : {1, 2}) {
    step->replay(computing);
    computing.synchronize();
    rank.clique->require_whole();
    CHECK(job.ledger(0).number == number);
    CHECK(last().label.view() == "the recorded step");
    CHECK(last().outcome() == Outcome::done);
  }
  job.ledger(0).recorder->set_step(17);
  others_came = false;
  step->replay(computing);
  const Stall stall = job.stall(0);
  INFO(stall.message);
  CHECK(stall.message.starts_with(
      "the recorded step by nccl of step 17 has stood still for 0.2 s, waiting for rank 1: "));
  while (rank.nccl->count("abort") == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  others_came = true;  // as an abort does
  others_came.notify_all();
  computing.synchronize();
  CHECK_THROWS_AS(rank.clique->require_whole(), CommunicationError);
  CHECK_THROWS_AS(step->replay(computing), CommunicationError);
  step.reset();
  *forgotten = true;
  forgotten->notify_all();
}

TEST_CASE("very many runs in flight are more than are watched, and no harm") {
  Watched job(1, 60);
  FakeStream computing({DeviceKind::cuda, 0});
  computing.hang(true);
  computing.queue([] {});
  Event last;
  for (int run = 0; run < 1000; ++run) last = job[0].collective->start(computing.record());
  computing.hang(false);
  last.wait();
  CHECK(job.ledger(0).number == 1000);
}

}  // namespace
}  // namespace ronda::nccl_test
