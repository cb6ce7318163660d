// When a server applies gradients and answers pulls, without messages.
#include "support/catch.hpp"
#include "support/message.hpp"

#include <ronda/core/error.hpp>
#include <ronda/runtime/key_value/detail/part_placement.hpp>
#include <ronda/runtime/key_value/detail/served_part.hpp>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

namespace ronda {
namespace {

/// A server's part and its workers, with one number as the value.
class Bench final : private Answers {
 public:
  Bench(int workers, const KeyValueOptions& options, MakePartUpdate make_update = adding())
      : together_{options, std::vector<bool>(static_cast<std::size_t>(workers), true), *this, statistics_,
                  std::move(make_update)},
        part_(together_, {"value", 0, 1, 1}, std::array{0.0F}),
        pulled_(static_cast<std::size_t>(workers)) {}

  static MakePartUpdate adding() {
    return function_update([](const KeyPart&, std::uint64_t, std::span<float> values, std::span<const float> gradient) {
      values[0] += gradient[0];
    });
  }

  void push(int worker, float gradient) {
    PushedGradient pushed{{worker, next_++}, pulled_[static_cast<std::size_t>(worker)], pool_.take(1)};
    pushed.elements[0] = gradient;
    part_.push(std::move(pushed));
  }
  void pull(int worker) { part_.pull({worker, next_++}); }
  void close(int worker) {
    together_.open[static_cast<std::size_t>(worker)] = false;
    part_.worker_closed(worker);
  }
  ServedPart& part() { return part_; }
  /// `1 done`, `0 dropped`, `2 has 3.5 of 4`: answers by worker since the last call.
  std::vector<std::string> said() { return std::exchange(said_, {}); }
  [[nodiscard]] const KeyValueStatistics& statistics() const { return statistics_; }
  [[nodiscard]] std::size_t answered() const { return answered_; }
  [[nodiscard]] std::size_t asked() const { return next_; }
  float value = 0;      ///< that was pulled last
  int unheard_of = -1;  ///< the worker that no values can be sent to

 private:
  void say(const Asked& asked, const std::string& text) {
    said_.push_back(std::to_string(asked.worker) + " " + text);
    ++answered_;
  }
  void done(const Asked& asked) override { say(asked, "done"); }
  void dropped(const Asked& asked) override { say(asked, "dropped"); }
  void values(const Asked& asked, const PartValues& values) override {
    if (asked.worker == unheard_of) throw ResourceError("no memory for the values");
    pulled_[static_cast<std::size_t>(asked.worker)] = values.version;
    value = values.elements[0];
    say(asked, "has version " + std::to_string(values.version));
  }

  KeyValueStatistics statistics_;
  GradientPool pool_;
  ServedTogether together_;
  ServedPart part_;
  std::vector<std::uint64_t> pulled_;
  std::vector<std::string> said_;
  std::uint64_t next_ = 0, answered_ = 0;
};

using Said = std::vector<std::string>;

std::vector<int> workers_of(const std::vector<Asked>& questions) {
  std::vector<int> workers;
  for (const Asked& asked : questions) workers.push_back(asked.worker);
  return workers;
}

/// Throws at one of its updates.
MakePartUpdate throwing_at(std::uint64_t bad) {
  return function_update([bad](const KeyPart&, std::uint64_t update, std::span<float>, std::span<const float>) {
    if (update == bad) throw InputError("this update does not work");
  });
}

TEST_CASE("a round's mean is summed in the order of ranks, whatever comes first") {
  const std::array gradients{1e8F, 3.0F, -1e8F, 5.0F};  // whose sum depends on the order
  float sum = 0;
  for (const float gradient : gradients) sum += gradient;
  std::array order{0, 1, 2, 3};
  std::size_t wrong = 0;
  do {
    Bench bench(4, {});
    for (const int worker : order) bench.push(worker, gradients[static_cast<std::size_t>(worker)]);
    bench.pull(0);
    wrong += bench.value == sum / 4 ? 0 : 1;
  } while (std::ranges::next_permutation(order).found);
  CHECK(wrong == 0);
}

TEST_CASE("a pull waits for the round that its worker has pushed to") {
  Bench bench(2, {});
  bench.pull(0);
  CHECK(bench.said() == Said{"0 has version 0"});
  bench.push(0, 1);
  bench.pull(0);
  bench.pull(1);  // has pushed nothing
  CHECK(bench.said() == Said{"0 done", "1 has version 0"});
  bench.push(1, 2);
  CHECK(bench.said() == Said{"1 done", "0 has version 1"});
  CHECK(bench.value == 1.5F);
}

TEST_CASE("with two of three gradients wanted the third is dropped and counted, and its worker goes on") {
  Bench bench(3, {.replicas_to_aggregate = 2});
  bench.push(2, 4);
  bench.push(0, 2);
  bench.push(1, 1000);
  bench.pull(1);
  CHECK(bench.said() == Said{"2 done", "0 done", "1 dropped", "1 has version 1"});
  CHECK(bench.value == 3);
  bench.push(1, 10);  // to the round of the version that it has
  bench.push(0, 20);  // and the one after its last push: the same
  bench.pull(2);      // which has pushed to the round before
  CHECK(bench.said() == Said{"1 done", "0 done", "2 has version 2"});
  CHECK(bench.value == 18);
  CHECK(bench.statistics().dropped == 1);
  CHECK(bench.statistics().updates == 2);
}

TEST_CASE("what is pushed ahead waits for its round") {
  Bench bench(2, {});
  for (int round = 1; round <= 3; ++round) bench.push(0, static_cast<float>(round));
  bench.pull(0);
  for (int round = 1; round <= 3; ++round) bench.push(1, static_cast<float>(10 * round));
  CHECK(bench.said() == Said{"0 done", "0 done", "0 done", "1 done", "1 done", "1 done", "0 has version 3"});
  CHECK(bench.value == 33);
}

TEST_CASE("a push beyond the bound on what is pushed ahead is answered when enough rounds have ended") {
  Bench bench(2, {.ahead_bytes = 2 * sizeof(float)});
  for (int push = 0; push < 5; ++push) bench.push(0, 1);
  CHECK(bench.said() == Said{"0 done", "0 done", "0 done"});  // one for this round, two for later rounds
  bench.push(1, 1);
  CHECK(bench.said() == Said{"1 done"});  // three are still ahead
  bench.push(1, 1);
  CHECK(bench.said() == Said{"1 done", "0 done", "0 done"});
  bench.pull(1);
  CHECK(bench.said() == Said{"1 has version 2"});
}

TEST_CASE("where too few workers are left for a round, a pull that waits for it is refused") {
  Bench bench(3, {.replicas_to_aggregate = 2});
  bench.close(1);
  bench.push(0, 1);
  bench.pull(0);  // the third may come yet
  const std::string why = test::message_of<Error>([&] { bench.close(2); });
  CHECK(why ==
        "update 1 of 'value' takes the gradients of 2 workers, and only 1 can come: the others have closed the store");
  CHECK(bench.part().take_waiting().size() == 1);
}

TEST_CASE("where a worker has closed, a round that can no longer be filled is refused when the one before it ends") {
  Bench bench(3, {});
  bench.push(1, 1);
  bench.close(1);
  bench.push(0, 1);
  bench.push(0, 2);
  bench.pull(0);  // waits for the second round
  const std::string why = test::message_of<Error>([&] { bench.push(2, 1); });
  CHECK(why ==
        "update 2 of 'value' takes the gradients of 3 workers, and only 2 can come: the others have closed the store");
  CHECK(bench.said() == Said{"1 done", "0 done", "0 done", "2 done"});
  CHECK(workers_of(bench.part().take_waiting()) == std::vector{0});
}

TEST_CASE("every gradient is taken, or its worker hears that it was dropped, also where workers push ahead") {
  Bench bench(4, {.replicas_to_aggregate = GENERATE(1, 2, 3)});
  std::mt19937 random(1);
  std::uint64_t dropped = 0;
  std::string last;
  for (int i = 0; i < 2000; ++i) {
    const int worker = static_cast<int>(random() % 4);
    if (random() % 3 == 0)
      bench.pull(worker);
    else
      bench.push(worker, 1);
    for (const auto& answer : bench.said()) {
      dropped += answer.ends_with("dropped") ? 1 : 0;
      if (answer.find("has version") != std::string::npos) last = answer;
    }
  }
  CHECK(dropped > 0);
  CHECK(dropped == bench.statistics().dropped);
  CHECK(last.ends_with(" has version " + std::to_string(static_cast<int>(bench.value))));  // all means are 1
}

TEST_CASE("a question that something fails in is given back once, and no other that is answered") {
  SECTION("a push whose update throws") {
    Bench bench(2, {.asynchronous = true}, throwing_at(1));
    bench.push(0, 1);
    CHECK(test::message_of<Error>([&] { bench.push(1, 1); }) == "this update does not work");
    CHECK(bench.said() == Said{"0 done"});
    CHECK(workers_of(bench.part().take_waiting()) == std::vector{1});
  }
  SECTION("a push that waited for a slower worker") {
    Bench bench(2, {.asynchronous = true, .max_staleness = 0}, throwing_at(2));
    bench.push(0, 1);
    bench.push(0, 1);
    CHECK(test::message_of<Error>([&] { bench.push(1, 1); }) == "this update does not work");
    CHECK(bench.said() == Said{"0 done", "1 done"});
    CHECK(workers_of(bench.part().take_waiting()) == std::vector{0});
  }
  SECTION("a round: its pushes are answered when they come") {
    Bench bench(2, {}, throwing_at(0));
    bench.push(0, 1);
    bench.pull(0);
    CHECK(test::message_of<Error>([&] { bench.push(1, 1); }) == "this update does not work");
    CHECK(bench.said() == Said{"0 done", "1 done"});
    CHECK(workers_of(bench.part().take_waiting()) == std::vector{0});
  }
  SECTION("a pull") {
    Bench bench(2, {.asynchronous = GENERATE(false, true)});
    bench.unheard_of = 1;
    CHECK(test::message_of<Error>([&] { bench.pull(1); }) == "no memory for the values");
    CHECK(workers_of(bench.part().take_waiting()) == std::vector{1});
  }
  SECTION("one of several pulls that waited") {
    const bool asynchronous = GENERATE(false, true);
    KeyValueOptions options{.asynchronous = asynchronous};
    if (asynchronous) options.max_staleness = 0;
    Bench bench(3, options);
    for (const int worker : {0, 1}) bench.push(worker, 1);
    for (const int worker : {0, 1}) bench.pull(worker);
    bench.unheard_of = 1;
    CHECK(test::message_of<Error>([&] { bench.push(2, 1); }) == "no memory for the values");
    CHECK(bench.said() == Said{"0 done", "1 done", "2 done", "0 has version " + std::string(asynchronous ? "3" : "1")});
    CHECK(workers_of(bench.part().take_waiting()) == std::vector{1});
  }
}

TEST_CASE("an asynchronous gradient is applied as it comes, and its age counted") {
  Bench bench(3, {.asynchronous = true});
  for (int worker = 0; worker < 3; ++worker) bench.pull(worker);
  bench.push(0, 1);  // 0 updates old
  bench.push(1, 2);  // 1
  bench.push(2, 3);  // 2
  bench.pull(1);
  CHECK(bench.value == 6);
  bench.push(1, 4);  // 0
  bench.push(1, 5);  // 1: its own
  bench.push(0, 6);  // 5
  CHECK(bench.statistics().staleness == std::vector<std::uint64_t>{2, 2, 1, 0, 0, 1});
  CHECK(bench.statistics().updates == 6);
}

TEST_CASE("very old gradients share the last place of the histogram") {
  Bench bench(2, {.asynchronous = true});
  for (int i = 0; i < 2000; ++i) bench.pull(0), bench.push(0, 1);
  bench.push(1, 1);
  CHECK(bench.statistics().staleness.size() == 1024);
  CHECK(bench.statistics().staleness.back() == 1);
}

TEST_CASE("a worker that is ahead waits until the slowest comes, and not for one that has closed") {
  Bench bench(3, {.asynchronous = true, .max_staleness = 1});
  bench.push(0, 1);
  bench.push(0, 1);
  CHECK(bench.said() == Said{"0 done", "0 done"});
  bench.push(0, 1);  // 2 pushes more than the others
  bench.pull(0);
  bench.push(1, 1);
  CHECK(bench.said() == Said{"1 done"});
  bench.push(2, 1);
  CHECK(bench.said() == Said{"2 done", "0 done"});  // and ahead again
  bench.close(2);
  bench.push(1, 1);
  CHECK(bench.said() == Said{"1 done", "0 has version 6"});
  CHECK(bench.statistics().waited == 2);
}

TEST_CASE("the bound on how far workers run apart bounds the age of gradients, and lets all go on") {
  const int workers = GENERATE(2, 3, 5);
  const std::uint64_t bound = GENERATE(0, 1, 4);
  Bench bench(workers, {.asynchronous = true, .max_staleness = bound});
  std::mt19937 random(static_cast<unsigned>(workers) * 10 + static_cast<unsigned>(bound));
  enum class State : std::uint8_t { idle, waits, closed };
  std::vector<State> states(static_cast<std::size_t>(workers), State::idle);
  std::vector<int> left(states.size(), 400);  // questions of each: a pull, a push, …
  for (int turns = 0; std::ranges::count(states, State::closed) < workers; ++turns) {
    REQUIRE(turns < 1'000'000);
    const int worker = static_cast<int>(random() % static_cast<unsigned>(workers)) / (random() % 2 == 0 ? 1 : 2);
    State& state = states[static_cast<std::size_t>(worker)];
    int& questions = left[static_cast<std::size_t>(worker)];
    if (state != State::idle) continue;
    state = questions == 0 ? State::closed : State::waits;
    if (questions == 0)
      bench.close(worker);
    else if (questions-- % 2 == 0)
      bench.pull(worker);
    else
      bench.push(worker, 1);
    for (const auto& answer : bench.said()) states[static_cast<std::size_t>(answer[0] - '0')] = State::idle;
  }
  CHECK(bench.answered() == bench.asked());
  CHECK(bench.statistics().updates == static_cast<std::uint64_t>(200 * workers));
  CHECK(bench.statistics().staleness.size() <= (static_cast<std::size_t>(workers) - 1) * (2 * bound + 1) + 1);
}

TEST_CASE("values that are on their way are not written") {
  struct Keep final : Answers {
    void done(const Asked&) override {}
    void dropped(const Asked&) override {}
    void values(const Asked&, const PartValues& values) override { kept.push_back(values); }
    std::vector<PartValues> kept;
  } keep;
  KeyValueStatistics statistics;
  GradientPool pool;
  ServedTogether together{{.asynchronous = true}, {true}, keep, statistics, Bench::adding()};
  ServedPart part(together, {"value", 0, 1, 1}, std::array{0.0F});
  for (int i = 0; i < 3; ++i) {
    part.pull({});
    part.pull({});
    PushedGradient gradient{{}, 0, pool.take(1)};
    gradient.elements[0] = 1;
    part.push(std::move(gradient));
  }
  REQUIRE(keep.kept.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(keep.kept[i].elements[0] == static_cast<float>(i / 2));
  CHECK(keep.kept[0].elements == keep.kept[1].elements);  // one copy of a version
  keep.kept.clear();                                      // before their pool
}

TEST_CASE("values are spread by bytes, and cut into parts that cover them") {
  const std::vector<std::size_t> counts{3, 0, 1'000'000, 17, 400'000, 16};
  const std::size_t part_bytes = 4096;
  for (const int servers : {1, 2, 3, 7}) {
    PartPlacement placement(servers, part_bytes);
    std::vector<std::size_t> elements(static_cast<std::size_t>(servers));
    for (const auto& call : {placement.place(counts), placement.place(counts)})
      for (std::size_t i = 0; i < counts.size(); ++i) {
        std::size_t end = 0;
        for (const PlacedPart& part : call[i]) {
          CHECK(part.range.begin == end);
          CHECK(part.range.size() <= part_bytes / sizeof(float));
          end = part.range.end;
          elements[static_cast<std::size_t>(part.server)] += part.range.size();
        }
        CHECK(end == counts[i]);
      }
    const auto [fewest, most] = std::ranges::minmax(elements);
    CHECK(most - fewest <= part_bytes / sizeof(float));
  }
}

}  // namespace
}  // namespace ronda
