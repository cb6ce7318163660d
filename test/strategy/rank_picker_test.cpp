// One rank alone fails while primitives are timed, or between two questions: all ranks get its error, and can go on.
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"

#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/replica/rank_picker.hpp>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace ronda::rank_picker_test {
namespace {

using Candidates = std::vector<Candidate>;

Candidates two(bool fails) {
  return {{"one", [] {}}, {"two", [fails] {
                             if (fails) throw Error("out of registers");
                           }}};
}

TEST_CASE("a primitive that fails on one rank fails the question on all") {
  const Communicator all = test::world().communicator();
  EventSink sink;
  RankPicker picker(all, {}, "", sink);
  const bool fails = all.rank() + 1 == all.size();
  const std::string why = test::message_of<Error>([&] { static_cast<void>(picker.pick("which", two(fails))); });
  CHECK(why.find("out of registers") != std::string::npos);
  CHECK(picker.pick("which then", two(false)) < 2);
}

TEST_CASE("a rank that fails between two questions is told of, and not taken for one that answers") {
  const Communicator all = test::world().communicator();
  EventSink sink;
  RankPicker picker(all, {}, "", sink);
  const bool fails = all.rank() + 1 == all.size();
  const std::string why = test::message_of<Error>([&] {
    agree(all, [&] {
      static_cast<void>(picker.pick("first", two(false)));
      if (fails) throw Error("no such file");
      static_cast<void>(picker.pick("second", two(false)));
    });
  });
  CHECK(why.find("no such file") != std::string::npos);
}

/// It fails by chance only where each of rank 0's sleeps of 1 ms takes longer than its shortest of 30 ms.
TEST_CASE("a candidate's time counts as often as it says") {
  EventSink sink;
  RankPicker picker(test::world().communicator(), {}, "", sink);
  const auto wait = [](int milliseconds) {
    return [=] { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); };
  };
  CHECK(picker.pick("alike", Candidates{{"short", wait(1)}, {"long", wait(30)}}) == 0);
  CHECK(picker.pick("one costs others time", Candidates{{"short", wait(1), 1000}, {"long", wait(30)}}) == 1);
}

}  // namespace
}  // namespace ronda::rank_picker_test
