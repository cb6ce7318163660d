// The second door where ranks come late: what was given up stays apart from what comes after it, and nothing is given
// up unless somebody asked for that.
#include "support/catch.hpp"
#include "support/ranks.hpp"

#include <ronda/coordinator/coordinator.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ronda::lateness_test {
namespace {

int ranks() { return test::world().size(); }
int rank() { return test::world().rank(); }
bool is_last() { return rank() == ranks() - 1; }
std::string name_of_last() { return "rank " + std::to_string(ranks() - 1) + " on "; }

Coordinator open(const CoordinatorOptions& options) { return Coordinator(test::world().communicator(), options); }

void sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

std::string thrown_by(const std::function<void()>& work) {
  try {
    work();
  } catch (const CommunicationError& error) {
    return error.what();
  }
  return {};
}

/// Numbers of which a sum tells what steps it is made of.
float number_of(int step) { return static_cast<float>(1 << (4 * step)); }

/// One step's sum; the text of its error, or what is wrong with the sum, or nothing.
std::string step(Coordinator& coordinator, int step, const std::string& name = "x") {
  std::vector<float> value{number_of(step)};
  const std::string error = thrown_by([&] { coordinator.allreduce(name, Tensor(std::span(value))).wait(); });
  if (!error.empty()) return error;
  return value[0] == number_of(step) * static_cast<float>(coordinator.size()) ? ""
                                                                              : "a sum of " + std::to_string(value[0]);
}

TEST_CASE("what was given up fails on the rank that comes to it later, once, and steps stay apart") {
  if (ranks() == 1) return;
  Coordinator coordinator = open({.missing_limit = 1});
  CHECK(step(coordinator, 1).empty());
  if (is_last()) sleep(1.5);
  const std::string second = step(coordinator, 2);
  if (is_last())
    CHECK_THAT(second, Contains("'x'") && Contains("gave it up") && Contains("not by " + name_of_last()));
  else
    CHECK_THAT(second, Contains("'x'") && Contains("for 1 s not by " + name_of_last()));
  for (const int later : {3, 4, 5}) CHECK(step(coordinator, later) == "");
  coordinator.close();
}

TEST_CASE("a rank that is late for several uses of a name fails at as many") {
  if (ranks() == 1) return;
  Coordinator coordinator = open({.missing_limit = 0.5});
  CHECK(step(coordinator, 1).empty());
  if (is_last()) sleep(1.3);  // the others give up two in this time, and wait for the third
  for (const int given_up : {2, 3}) CHECK_THAT(step(coordinator, given_up), Contains("not by " + name_of_last()));
  CHECK(step(coordinator, 4) == "");
  CHECK(step(coordinator, 5, "y") == "");
  coordinator.close();
}

TEST_CASE("ranks that give up different things at the same time all know of both") {
  if (ranks() == 1) return;
  Coordinator coordinator = open({.missing_limit = 0.5});
  coordinator.barrier("start").wait();
  const bool even = rank() % 2 == 0;
  const std::string mine = even ? "of even ranks" : "of odd ranks", theirs = even ? "of odd ranks" : "of even ranks";
  CHECK_THAT(step(coordinator, 1, mine), Contains("'" + mine + "'") && Contains("for 0.5 s not by "));
  coordinator.barrier("both").wait();
  CHECK_THAT(step(coordinator, 1, theirs), Contains("'" + theirs + "'") && Contains("gave it up"));
  for (const int later : {2, 3}) {
    CHECK(step(coordinator, later, "of even ranks") == "");
    CHECK(step(coordinator, later, "of odd ranks") == "");
  }
  coordinator.close();
}

TEST_CASE("what a group, a split, a barrier and tensors of one name gave up fails later, too") {
  if (ranks() == 1) return;
  Coordinator coordinator = open({.missing_limit = 0.5});
  Coordinator group = coordinator.split("group", 0, -rank());
  std::vector<float> a{1}, b{2};
  const std::vector<Tensor> both{Tensor(std::span(a)), Tensor(std::span(b))};
  const std::function<void()> uses[] = {
      [&] { group.barrier("in the group").wait(); },
      [&] { coordinator.barrier("in all").wait(); },
      [&] { coordinator.allreduce("both", both).wait(); },
      [&] { static_cast<void>(coordinator.split("part", 0, 0)); },
  };
  for (const auto& use : uses) {
    coordinator.barrier("start").wait();
    if (is_last()) sleep(0.8);
    CHECK_THAT(thrown_by(use), Contains("not by " + name_of_last()));
    CHECK(thrown_by(use).empty());
  }
  CHECK(a[0] == static_cast<float>(ranks()));
  group.close();
  coordinator.close();
}

TEST_CASE("who has joined has nothing behind him") {
  if (ranks() == 1) return;
  Coordinator coordinator = open({.missing_limit = 0.5});
  coordinator.barrier("start").wait();
  if (!is_last()) CHECK_THAT(step(coordinator, 1), Contains("not by " + name_of_last()));
  if (is_last()) sleep(0.8);
  coordinator.join();
  CHECK(step(coordinator, 2) == "");
  coordinator.close();
}

TEST_CASE("nothing is given up that nobody limited: a rank is told of, again at doubled times, and waited for") {
  CHECK(CoordinatorOptions().missing_limit == 0);
  if (ranks() == 1) return;
  std::mutex door;
  std::vector<std::string> warnings;
  CoordinatorOptions options{.missing_warning = 0.2};
  options.on_warning = [&](const std::string& text) {
    const std::lock_guard lock(door);
    warnings.push_back(text);
  };
  const auto times_told = [&](const std::string& part) {
    const std::lock_guard lock(door);
    return std::ranges::count_if(warnings, [&](const auto& text) { return text.find(part) != std::string::npos; });
  };
  Coordinator coordinator = open(options);
  coordinator.barrier("start").wait();
  if (is_last()) sleep(1.2);
  CHECK(step(coordinator, 1) == "");
  if (is_last()) sleep(0.6);
  coordinator.join();
  if (is_last()) sleep(0.6);
  coordinator.close();
  for (const char* seconds : {"0.2", "0.4", "0.8"})
    CHECK(times_told("and for " + std::string(seconds) + " s not by " + name_of_last()) == 1);
  for (const char* seconds : {"0.2", "0.4"}) {
    CHECK(times_told(" joined, and for " + std::string(seconds) + " s not " + name_of_last()) == 1);
    CHECK(times_told(" closed the coordinator, and for " + std::string(seconds) + " s not " + name_of_last()) == 1);
  }
}

}  // namespace
}  // namespace ronda::lateness_test
