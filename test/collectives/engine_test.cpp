// An engine that is moved by hand: two ranks in one thread, on a clock that stands still.
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_clock.hpp"

#include <ronda/collectives/fabric/threads/thread_fabric.hpp>
#include <ronda/collectives/host/engine/planned_collective.hpp>
#include <ronda/collectives/watch/watchdog.hpp>
#include <ronda/core/error.hpp>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ronda::engine_test {
namespace {

/// One message to rank 1, or from rank 0.
class OneMessage final : public Algorithm {
 public:
  OneMessage(std::unique_ptr<Transport> transport, std::span<std::byte> message)
      : transport_(std::move(transport)), message_(message) {}
  Task run() override {
    request_ = transport_->rank() == 0 ? transport_->send(1, message_) : transport_->receive(0, message_);
    co_await request_;
  }
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { visit(*transport_); }

 private:
  std::unique_ptr<Transport> transport_;
  std::span<std::byte> message_;
  Request request_;
};

/// A rank with a watchdog that gives it two seconds.
struct Rank {
  Rank(const std::shared_ptr<ThreadNetwork>& network, int rank, const std::filesystem::path& folder,
       const Clock& the_clock)
      : clock(the_clock), ledger{std::make_shared<Recorder>(folder, false, rank, 2, "", clock)} {
    watchdog = std::make_shared<Watchdog>(ledger.recorder, Watchdog::Options{timeout, true, {}});
    HostNames hosts;
    for (int other = 0; other < 2; ++other) hosts.add({});
    ledger.recorder->met(rank, 2, 42);
    watchdog->meet(hosts, {{rank, ledger.recorder->path().string()}}, nullptr);
    auto fabric = std::make_shared<ThreadFabric>(network, rank, clock);
    auto transport = fabric->open(fabric->roster().all(), FabricChannel());
    engine = std::make_shared<Engine>(std::move(fabric), ledger.recorder, watchdog);
    std::vector<std::unique_ptr<Algorithm>> algorithms;
    algorithms.push_back(std::make_unique<OneMessage>(std::move(transport), number));
    message = std::make_unique<PlannedCollective>(engine, std::move(algorithms), "hand",
                                                  Description(rank == 0 ? Kind::send : Kind::receive, "a message"),
                                                  ledger, nullptr);
  }
  /// As its threads would for a moment.
  void look() {
    for (int steps = 0; steps < 256; ++steps) static_cast<void>(engine->step());
    watchdog->tick(clock.now());
  }
  [[nodiscard]] bool is_over(const Event& event, std::string& error) const {
    try {
      return event.ready();
    } catch (const CommunicationError& failure) {
      error = failure.what();
      return true;
    }
  }

  static constexpr double timeout = 2;
  const Clock& clock;
  Ledger ledger;
  std::shared_ptr<Watchdog> watchdog;
  std::shared_ptr<Engine> engine;
  std::array<std::byte, 8> number{};
  std::unique_ptr<PlannedCollective> message;
};

class Ranks {
 public:
  static constexpr double look = 1.0 / 16;
  Rank& operator[](std::size_t rank) { return *ranks_[rank]; }
  /// Rank `rank` alone goes on.
  void run(double seconds, std::size_t rank) {
    for (const double end = clock_.now() + seconds; clock_.now() < end;) {
      clock_.advance(look);
      ranks_[rank]->look();
    }
  }

 private:
  test::Folder folder_{"engine"};
  test::TestClock clock_;
  std::shared_ptr<ThreadNetwork> network_ = std::make_shared<ThreadNetwork>(2);
  std::array<std::unique_ptr<Rank>, 2> ranks_{std::make_unique<Rank>(network_, 0, folder_.path(), clock_),
                                              std::make_unique<Rank>(network_, 1, folder_.path(), clock_)};
};

/// Seconds from the last movement to the verdict on one host.
constexpr double until_verdict = Rank::timeout + Ranks::look + 1.5;

TEST_CASE("a step of the engine moves what can be moved, and returns where nothing can") {
  Ranks ranks;
  ranks[0].number[3] = std::byte{7};
  const Event received = ranks[1].message->start();
  CHECK_FALSE(ranks[1].engine->step());
  CHECK_FALSE(received.ready());
  const Event sent = ranks[0].message->start();
  CHECK(ranks[1].engine->step());
  CHECK(received.ready());
  CHECK(sent.ready());
  CHECK(ranks[1].number[3] == std::byte{7});
  CHECK_FALSE(ranks[1].engine->step());
}

TEST_CASE("a wait is given up with the watchdog's verdict, and not before") {
  Ranks ranks;
  const Event received = ranks[1].message->start();
  std::string error;
  ranks.run(Ranks::look, 1);
  ranks.run(until_verdict - Ranks::look, 1);
  CHECK(ranks[1].watchdog->verdict() == nullptr);
  ranks.run(Ranks::look, 1);
  CHECK(ranks[1].watchdog->verdict() != nullptr);
  CHECK_FALSE(ranks[1].is_over(received, error));
  ranks[1].look();  // the engine finds the verdict when it looks again
  REQUIRE(ranks[1].is_over(received, error));
  CHECK(error.find("a message has stood still for 2 s") != std::string::npos);
}

TEST_CASE("a message that is given up ends when the receiver has had a tenth of a second to notice") {
  Ranks ranks;
  const Event sent = ranks[0].message->start();
  std::string error;
  ranks.run(Ranks::look, 0);
  ranks.run(until_verdict, 0);
  ranks[0].look();  // given up
  ranks[0].look();
  CHECK_FALSE(ranks[0].is_over(sent, error));
  ranks.run(Ranks::look, 0);
  CHECK_FALSE(ranks[0].is_over(sent, error));
  ranks.run(Ranks::look, 0);
  REQUIRE(ranks[0].is_over(sent, error));
  CHECK(error.find("has stood still") != std::string::npos);
  static_cast<void>(ranks[1].message->start());  // takes the message, so that nothing stays behind
  CHECK(ranks[1].number == ranks[0].number);
}

}  // namespace
}  // namespace ronda::engine_test
