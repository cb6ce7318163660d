// Which pushes an update takes, and which workers wait: tables of events, and what follows from each.
#include "support/catch.hpp"

#include <ronda/runtime/key_value/detail/push_queue.hpp>

#include <sstream>
#include <string>
#include <vector>

namespace ronda {
namespace {

/// Plays events:
///
///     1@3    worker 1 pushes a gradient of version 3; 1@3! one of no samples; 1@3- without a gradient
///     1d     drops a push of worker 1      1x    worker 1 leaves
///     make   makes the next update         new   restarts
///
/// A push is answered by the fates in the next update, by worker: `t` taken, `l` late, `i` idle, `.` waits; or by `..`,
/// if that has not all its gradients yet. Other events are answered by the workers that may pull.
class Player {
 public:
  Player(int workers, const KeyValueOptions& options)
      : workers_(workers), queue_(options, static_cast<std::size_t>(workers)) {}

  std::string play(const std::string& event) {
    if (event == "new") {
      queue_.restart();
    } else if (event == "make") {
      std::vector<Fate> fates;
      if (!queue_.decide(fates)) return "no";
      queue_.advance(fates);
    } else if (event.ends_with("x")) {
      queue_.leave(event[0] - '0');
    } else if (event.ends_with("d")) {
      queue_.drop(event[0] - '0');
    } else {
      return push(event);
    }
    std::string pulling;
    for (int worker = 0; worker < workers_; ++worker) pulling += queue_.may_pull(worker) ? std::to_string(worker) : "";
    return pulling.empty() ? "none" : pulling;
  }

 private:
  std::string push(const std::string& event) {
    queue_.push({.asked = {.worker = event[0] - '0'},
                 .version = static_cast<std::uint64_t>(event[2] - '0'),
                 .counts = !event.ends_with("!"),
                 .idle = event.ends_with("-")});
    std::vector<Fate> fates;
    if (!queue_.decide(fates)) return "..";
    std::string text;
    for (const Fate fate : fates) text += ".tli"[static_cast<int>(fate)];
    return text;
  }

  int workers_;
  PushQueue queue_;
};

struct Case {
  const char* name;
  int workers;
  KeyValueOptions options;
  std::string events, expected;
};

std::string played(const Case& table) {
  Player player(table.workers, table.options);
  std::istringstream events(table.events);
  std::string heard;
  for (std::string event; events >> event;) heard += (heard.empty() ? "" : " ") + player.play(event);
  return heard;
}

const Case cases[] = {
    {"a round takes one push of each worker", 2, {}, "0@0 1@0 make 1@1 0@1 make", ".. tt 01 .. tt 01"},
    {"a push ahead waits for its round, and so does its worker's pull",
     2,
     {},
     "0@0 0@0 0@0 1@0 make make 1@1 make 1@2 make",
     ".. .. .. tt 1 no tt 1 tt 01"},
    {"a round takes the first two of three; the third is late in the next one",
     3,
     {.replicas_to_aggregate = 2},
     "2@0 0@0 1@0 make 2@1 0@1 make",
     ".. t.t t.t 012 .. tlt 012"},
    {"a push counts towards the round of the pulled version, or the one after the last push",
     2,
     {.replicas_to_aggregate = 1},
     "0@0 make 1@0 1d 1@0 make 0@2 make",
     "t. 01 .. 01 .t 01 t. 01"},
    {"a gradient of no samples is taken, and is not one of the first two",
     3,
     {.replicas_to_aggregate = 2},
     "0@0! 1@0 2@0 make",
     ".. .. ttt 012"},
    {"if all workers have pushed, no other gradient can come",
     3,
     {.replicas_to_aggregate = 2},
     "0@0! 1@0! 2@0 make",
     ".. .. ttt 012"},
    {"an asynchronous update takes one push, in the order of arrival",
     2,
     {.asynchronous = true},
     "1@0 0@0 make make make",
     ".t .t 01 01 no"},
    {"a worker that is ahead waits for the slowest, and not for one that has left",
     2,
     {.asynchronous = true, .max_staleness = 1},
     "0@0 make 0@1 make 0@2 1@0 make make 1x",
     "t. 01 t. 1 .. .t 01 1 0"},
    {"an idle worker holds up no other, until the queue restarts",
     2,
     {.asynchronous = true, .max_staleness = 0},
     "1@0- 0@0 make 0@1 make new 0@0 make",
     ".. ti 0 t. 0 01 t. 1"},
};

TEST_CASE("what a queue decides follows from its events") {
  for (const Case& table : cases) {
    INFO(table.name);
    CHECK(played(table) == table.expected);
  }
}

TEST_CASE("pushes are taken in the order of workers, and other servers' queues advance by the fates alone") {
  const KeyValueOptions options{.replicas_to_aggregate = 2};
  PushQueue leader(options, 3), other(options, 3);
  for (const int worker : {2, 0, 1}) leader.push({.asked = {.worker = worker}});
  std::vector<Fate> fates;
  REQUIRE(leader.decide(fates));
  std::vector<int> workers;
  for (const PushedGradient* push : leader.taken(fates)) workers.push_back(push->asked.worker);
  CHECK(workers == std::vector{0, 2});
  for (PushQueue* queue : {&leader, &other}) {
    queue->advance(fates);
    CHECK((queue->version() == 1 && queue->taken_of(0) == 1 && queue->taken_of(1) == 0 && queue->taken_of(2) == 1));
  }
}

TEST_CASE("a round can still get the pushes that have come, and those of workers that are open") {
  PushQueue queue({}, 3);
  queue.push({.asked = {.worker = 0}});
  CHECK((queue.possible() == 3 && !queue.is_missing(0) && queue.is_missing(1)));
  queue.leave(1);
  CHECK((queue.possible() == 2 && !queue.is_missing(1)));
  queue.leave(0);  // its push stays
  CHECK(queue.possible() == 2);
}

TEST_CASE("the last element of a histogram of ages counts all older ones") {
  std::vector<std::uint64_t> ages;
  for (const std::uint64_t age : {0, 2, 3, 7, 2}) count_age(ages, age, 4);
  CHECK(ages == std::vector<std::uint64_t>{1, 0, 2, 2});
}

}  // namespace
}  // namespace ronda
