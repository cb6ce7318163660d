// What ranks do about a failure that one of them meets, and about disagreeing.
#include "support/rank_case.hpp"

#include <ronda/core/error.hpp>

#include <stdexcept>
#include <string>

namespace ronda::agreement_test {
namespace {

/// The error that `call` throws, which must be agreed.
Error thrown_by(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.agreed());
    return error;
  }
  FAIL("nothing was thrown");
  return Error("");
}

bool contains(const Error& error, const std::string& text) {
  return std::string(error.what()).find(text) != std::string::npos;
}

RANK_CASE("a phase that all ranks finish is fine") {
  int done = 0;
  agree(test::world().communicator(), [&] { ++done; });
  CHECK(done == 1);
}

RANK_CASE("where one rank fails all throw, with its status, its text and its name") {
  const Communicator communicator = test::world().communicator();
  const int failing = communicator.size() - 1;
  const Error error = thrown_by([&] {
    agree(communicator, [&] {
      if (communicator.rank() == failing) throw InputError("no such file: images.gz\n(second line)");
    });
  });
  CHECK(error.status() == ExitStatus::bad_input);
  CHECK(contains(error, "no such file: images.gz\n(second line)"));
  if (communicator.size() > 1) CHECK(contains(error, "rank " + std::to_string(failing) + " on "));
}

RANK_CASE("where several ranks fail differently the lowest is named") {
  const Communicator communicator = test::world().communicator();
  if (communicator.size() < 3) return;
  const Error error = thrown_by([&] {
    agree(communicator, [&] {
      if (communicator.rank() > 0) throw std::runtime_error("failure " + std::to_string(communicator.rank()));
    });
  });
  CHECK(error.status() == ExitStatus::failed);
  CHECK(contains(error, "rank 1 on "));
  CHECK(contains(error, "failure 1"));
}

RANK_CASE("where all ranks fail alike no rank is blamed") {
  const Error error = thrown_by([&] { agree(test::world().communicator(), [] { throw InputError("bad option"); }); });
  CHECK(std::string(error.what()) == "bad option");
  CHECK(error.status() == ExitStatus::bad_input);
}

RANK_CASE("an error of another rank has its settings as parts") {
  const Communicator communicator = test::world().communicator();
  const int failing = communicator.size() - 1;
  const Message told = "it has no room; take " + setting("strategy", "sharded");
  const auto in_brackets = [](const Setting& setting) { return "[" + setting.field + "]"; };
  const auto ends_as_shown = [&](const Error& error) {
    return error.message().text_with(in_brackets).ends_with("it has no room; take [strategy]") &&
           std::string(error.what()).ends_with(told.text());
  };
  CHECK(ends_as_shown(thrown_by([&] {
    agree(communicator, [&] {
      if (communicator.rank() == failing) throw ResourceError(told);
    });
  })));
  CHECK(ends_as_shown(thrown_by([&] { agree(communicator, [&] { throw ResourceError(told); }); })));
  if (communicator.size() == 1) return;
  const Error differing =
      thrown_by([&] { require_equal(communicator, setting("validation_split"), std::to_string(communicator.rank())); });
  CHECK(differing.message().text_with(in_brackets).starts_with("[validation_split] of rank 0 on "));
}

RANK_CASE("texts that differ are reported by their first line that does") {
  const Communicator communicator = test::world().communicator();
  require_equal(communicator, "the plan", "a\nb\nc");
  if (communicator.size() == 1) return;
  const std::string mine = communicator.rank() == 1 ? "a\nbx\nc" : "a\nb\nc";
  const Error error = thrown_by([&] { require_equal(communicator, "the plan", mine); });
  CHECK(error.status() == ExitStatus::bad_input);
  CHECK(contains(error, "the plan of rank 0 on "));
  CHECK(contains(error, "and rank 1 on "));
  CHECK(contains(error, "'b' and 'bx'"));
}

RANK_CASE("a text that ends early differs in the line that is missing") {
  const Communicator communicator = test::world().communicator();
  if (communicator.size() == 1) return;
  const std::string mine = communicator.rank() == 1 ? "a" : "a\nb";
  CHECK(contains(thrown_by([&] { require_equal(communicator, "the options", mine); }), "differ: 'b' and nothing"));
}

RANK_CASE("texts that differ are bad input, whoever catches it") {
  const Communicator communicator = test::world().communicator();
  if (communicator.size() > 1)
    CHECK_THROWS_AS(require_equal(communicator, "the plan", std::to_string(communicator.rank())), InputError);
  CHECK_THROWS_AS(agree(communicator, [] { throw InputError("no such file"); }), InputError);
  CHECK_THROWS_AS(agree(communicator, [] { throw 7; }), Error);
}

RANK_CASE("ranks at different places of the program learn that they are") {
  const Communicator communicator = test::world().communicator();
  if (communicator.size() == 1) return;
  const Error error = thrown_by([&] {
    if (communicator.rank() == 1)
      agree(communicator, [] {});
    else
      require_equal(communicator, "the plan", "a");
  });
  CHECK(contains(error, "different places"));
  CHECK(contains(error, "rank 1 on "));
}

RANK_CASE("ranks of a group are named as in the world") {
  const Communicator world = test::world().communicator();
  const Communicator reversed = world.split(0, -world.rank());
  const int failing = world.size() - 1;
  try {
    agree(reversed, [&] {
      if (world.rank() == failing) throw InputError("bad");
    });
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    if (world.size() > 1) CHECK(contains(error, "rank " + std::to_string(failing) + " on "));
  }
}

RANK_CASE("a failure of a part of the world is no agreement of all") {
  const Communicator world = test::world().communicator();
  if (world.size() == 1) return;
  const Communicator part = world.split(world.rank() == 0 ? 0 : 1, 0);
  try {
    agree(part, [] { throw InputError("bad"); });
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK_FALSE(error.agreed());
  }
}

}  // namespace
}  // namespace ronda::agreement_test
