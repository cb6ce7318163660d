#include "../../apps/command_line.hpp"
#include "core/message.hpp"
#include "support/catch.hpp"

#include <ronda/runtime/core/error.hpp>

#include <string>
#include <vector>

using namespace ronda;
using namespace ronda::test;

namespace {

/// An application's options, after these words.
TrainingOptions parsed(std::vector<std::string> words) {
  apps::CommandLine options("program", "A test.", {.epochs = 3, .learning_rate = 0.25});
  words.insert(words.begin(), "program");
  words.insert(words.end(), {"--data", "."});
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  const bool goes_on = options.parse(static_cast<int>(arguments.size()), arguments.data());  // which may throw
  REQUIRE(goes_on);
  return options.training;
}

std::string refusal(const std::vector<std::string>& words) {
  return message_of<InputError>([&] { static_cast<void>(parsed(words)); });
}

}  // namespace

TEST_CASE("less than nothing is no count, and what is not finite no number") {
  for (const std::string count : {"--epochs", "--steps", "--batch-size", "--global-batch-size", "--accumulate",
                                  "--seed", "--keep", "--audit-every", "--bucket-bytes", "--memory-limit"}) {
    require_mentions(refusal({count, "-1"}), {count, "-1 is negative"});
    require_mentions(refusal({count, "many"}), {count});
  }
  for (const std::string number : {"--warmup-epochs", "--clip-norm", "--momentum", "--learning-rate"})
    for (const std::string value : {"nan", "inf", "1e999"})
      require_mentions(refusal({number, value}), {number, value + " is no finite number"});
  REQUIRE(parsed({"--memory-limit", "2K"}).memory_limit == 2048);
  REQUIRE(parsed({"--steps", "18446744073709551615"}).steps == 18446744073709551615U);
}

TEST_CASE("what is no value of an option is refused, with those that there are") {
  require_mentions(refusal({"--no-such-option"}), {"--no-such-option"});
  require_mentions(refusal({"--epochs"}), {"--epochs"});
  require_mentions(refusal({"--learning-rate", "-1"}), {"--learning-rate"});
  require_mentions(refusal({"--communication-timeout", "-1"}), {"--communication-timeout"});
  require_mentions(refusal({"--allreduce", "horse"}),
                   {"auto, node, ring, halving, doubling, hierarchical, mpi, nccl or staged"});
  require_mentions(refusal({"--initializer", "guess"}), {"he_normal"});
  require_mentions(refusal({"--optimizer", "adamant", "--momentum", "0.9"}), {"sgd, momentum, nesterov, adam"});
  require_mentions(refusal({"--progress", "never"}), {"auto, inline or thread"});
}

TEST_CASE("a size of 0 is refused where one has to be given") {
  for (const std::string size : {"--batch-size", "--global-batch-size"})
    require_mentions(refusal({size, "0"}), {size, "at least 1"});
}

TEST_CASE("the learning rate is the application's with its own optimizer, named or not, and another's with another") {
  REQUIRE(parsed({}).learning_rate == 0.25);
  REQUIRE(parsed({"--optimizer", "nesterov"}).learning_rate == 0.25);
  REQUIRE(parsed({"--optimizer", "adam"}).learning_rate == 0);  // the trainer asks the optimizer
  REQUIRE(parsed({"--optimizer", "adam", "--learning-rate", "0.5"}).learning_rate == 0.5);
}

TEST_CASE("epochs are the application's where no length is given") {
  REQUIRE(parsed({}).epochs == 3U);
  REQUIRE(!parsed({"--steps", "7"}).epochs);
  REQUIRE(parsed({"--epochs", "2", "--steps", "7"}).epochs == 2U);
}
