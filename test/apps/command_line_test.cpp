#include "../../apps/command_line.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/temporary_folder.hpp"

#include <ronda/core/error.hpp>

#include <string>
#include <string_view>
#include <vector>

using namespace ronda;
using namespace ronda::test;

namespace {

struct Parsed {
  TrainingOptions training;
  WorldOptions world;
};

void parse(apps::CommandLine& options, std::vector<std::string> words) {
  words.insert(words.begin(), "program");
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  const bool goes_on = options.parse(static_cast<int>(arguments.size()), arguments.data());  // which may throw
  REQUIRE(goes_on);
}

const apps::Defaults defaults{.epochs = 3, .learning_rate = 0.25};

/// An application's options, after these words.
Parsed parsed_all(std::vector<std::string> words) {
  apps::CommandLine options("program", "A test.", defaults);
  parse(options, std::move(words));
  return {options.training, options.world};
}

TrainingOptions parsed(std::vector<std::string> words) { return parsed_all(std::move(words)).training; }

/// What an application prints of the error for these words; empty: there is none.
std::string refusal(const std::vector<std::string>& words) {
  apps::CommandLine options("program", "A test.", defaults);
  try {
    parse(options, words);
  } catch (const InputError& error) {
    return error.message().text_with(options.names());
  }
  return {};
}

/// A file for `--config`.
struct ConfigText {
  void write(const std::string& text) const { write_file(path, text); }

  TemporaryFolder folder;
  std::string path = folder / "train.toml";
};

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

TEST_CASE("an abbreviation and another case are no names, and the name that was meant is suggested") {
  require_mentions(refusal({"--lr", "0.1"}), {"no option --lr", "did you mean --learning-rate?"});
  require_mentions(refusal({"--optimizer", "Adam"}), {"'Adam' is not an optimizer", "did you mean adam?"});
  require_mentions(refusal({"--optimizer", "ADAMW"}), {"did you mean adamw?"});
  require_mentions(refusal({"--schedule", "Cosine"}), {"did you mean cosine?"});
  require_mentions(refusal({"--strategy", "Sharded"}), {"did you mean sharded?"});
  REQUIRE(refusal({"--optimizer", "abacus"}).find("did you mean") == std::string::npos);
}

TEST_CASE("what is no value of an option is refused, with those that there are") {
  require_mentions(refusal({"--no-such-option"}), {"no option --no-such-option; see program --help"});
  require_mentions(refusal({"--epochs"}), {"--epochs"});
  require_mentions(refusal({"--learning-rate", "-1"}), {"--learning-rate"});
  require_mentions(refusal({"--communication-timeout", "-1"}), {"--communication-timeout"});
  require_mentions(refusal({"--allreduce", "horse"}),
                   {"auto, node, ring, halving, doubling, hierarchical, mpi, direct, nccl or staged"});
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
  REQUIRE_FALSE(parsed({"--optimizer", "adam"}).learning_rate);  // the trainer asks the optimizer
  REQUIRE(parsed({"--learning-rate", "0"}).learning_rate == 0);
  require_mentions(refusal({"--learning-rate", "-1"}), {"--learning-rate", "from 0 on", "-1"});
  REQUIRE(parsed({"--optimizer", "adam", "--learning-rate", "0.5"}).learning_rate == 0.5);
}

TEST_CASE("a number that the chosen optimizer does not read is refused, with those that do") {
  require_mentions(refusal({"--optimizer", "sgd", "--momentum", "0.9"}),
                   {"--momentum has no meaning for --optimizer sgd", "it is for momentum, nesterov"});
  require_mentions(refusal({"--beta2", "0.9"}), {"--beta2 has no meaning for --optimizer nesterov", "adam"});
  REQUIRE(parsed({"--optimizer", "adam", "--beta2", "0.9"}).optimizer.beta2 == 0.9);
  REQUIRE(!parsed({"--optimizer", "adam"}).optimizer.beta2);  // the optimizer's usual one
}

TEST_CASE("an option that another one would make use of is refused without it") {
  require_mentions(refusal({"--prune-end", "0.5"}), {"--prune-end has no meaning without --prune"});
  REQUIRE(parsed({"--prune", "0.9", "--prune-end", "0.5"}).prune_end == 0.5);
  require_mentions(refusal({"--least-improvement", "0.1"}), {"--early-stopping, --keep-best or --reduce-rate-after"});
  REQUIRE(parsed({"--keep-best", "--least-improvement", "0.1"}).least_improvement == 0.1);
  require_mentions(refusal({"--keep", "2"}), {"--keep has no meaning without --checkpoint-dir"});
  require_mentions(refusal({"--strategy", "parameter_server", "--servers", "1", "--cluster", "roles.json"}),
                   {"--servers has no meaning with --cluster"});
}

TEST_CASE("changes that are allowed have an option's name") {
  require_mentions(refusal({"--allow-changes", "seed,learning_rate"}), {"--allow-changes: 'learning_rate' is not"});
  REQUIRE(parsed({"--allow-changes", "model,data,steps,learning-rate"}).allow_changes.size() == 4);
}

TEST_CASE("groups of parameters are given one by one, on the command line and in files") {
  const auto written = [](const TrainingOptions& options) {
    std::vector<std::string> texts;
    for (const auto& group : options.groups) texts.push_back(text_of(group));
    return texts;
  };
  const std::vector<std::string> both{"*.bias:weight_decay=0", "conv1:learning_rate=0.1,weight_decay=1e-04"};
  CHECK(written(parsed({"--group", both[0], "--group=" + both[1], "--epochs", "2"})) == both);
  CHECK(written(parsed({"--group", "a:weight-decay=2,learning-rate=0"})) ==
        std::vector<std::string>{"a:learning_rate=0,weight_decay=2"});
  const ConfigText file;
  file.write("group = [\"" + both[0] + "\", \"" + both[1] + "\"]\n");
  CHECK(written(parsed({"--config", file.path})) == both);
  file.write("group = \"" + both[1] + "\"\n");
  CHECK(written(parsed({"--config", file.path})) == std::vector<std::string>{both[1]});
  for (const std::string bad : {"*.bias", ":weight_decay=0", "a:", "a:rate=1", "a:weight_decay", "a:weight_decay=x",
                                "a:weight_decay=1,", "a:weight_decay=1,weight_decay=2"})
    require_mentions(refusal({"--group", bad}), {bad, "NAME:learning_rate=0.1,weight_decay=0"});
  for (const std::string bad : {"a:weight_decay=-1", "a:learning_rate=nan", "a:learning_rate=inf"})
    require_mentions(refusal({"--group", bad}), {"from 0 on", "a:"});
}

TEST_CASE("a TOML file's values are those of the command line") {
  const ConfigText file;
  file.write(
      "\xef\xbb\xbfsteps = 7 # the first\r\n# \"\r\nfreeze = [\n  \"conv1\", # one\n  '*.bias'\n]\nsave = \"a b, "
      "c#d\\u0065\"\nmomentum = 0.1\nbatch-size = 1_000\nno-shuffle = true\npredictions = '''a\\b'''\n"
      "learning-rate = 1\n");
  const TrainingOptions options = parsed({"--config", file.path});
  CHECK(options.steps == 7U);
  CHECK(options.freeze == std::vector<std::string>{"conv1", "*.bias"});
  CHECK(options.save == "a b, c#de");
  CHECK(options.optimizer.momentum == 0.1);
  CHECK(options.batch_size == 1000U);
  CHECK_FALSE(options.shuffle);
  CHECK(options.predictions == "a\\b");
  CHECK(options.learning_rate == 1);
  CHECK(parsed({"--steps", "8", "--config", file.path}).steps == 8U);
}

TEST_CASE("a file that is no TOML is refused with its line, and a line of INI with what to write") {
  const ConfigText file;
  for (const auto& [text, finding] :
       {std::pair("steps = 7\noptimizer = adam\n", ":2: 'optimizer = adam' is no TOML: write optimizer = \"adam\""),
        {"optimizer = nesterov ; the usual",
         ":1: 'optimizer = nesterov ; the usual' is no TOML: write optimizer = \"nesterov\""},
        {"learning-rate: 1\n", ":1: 'learning-rate: 1' is no TOML: write learning-rate = 1"},
        {"optimizer: 'adam'\n", ":1: 'optimizer: 'adam'' is no TOML: write optimizer = 'adam'"},
        {"save = a\"b\n", ":1: 'save = a\"b' is no TOML: write save = 'a\"b'"},
        {"\r\n  ; a comment\r\n", ":2: '; a comment' is no TOML: begin a comment with #"},
        {"steps = 7 ; more\n", ":1: 'steps = 7 ; more' is no TOML: write steps = 7"},
        {"quiet\nsteps = 7\n", ":1: 'quiet' is no TOML: write quiet = true"},
        {"memory-limit = 4G\n", ":1: 'memory-limit = 4G' is no TOML: write memory-limit = \"4G\""},
        {"learning-rate = 0,1\n", ":1: 'learning-rate = 0,1' is no TOML: write learning-rate = 0.1"},
        {"save = \"a", ":1: 'save = \"a' is no TOML: "},
        {"save = \"a\\qb\"", ":1: 'save = \"a\\qb\"' is no TOML: "},
        {"freeze = [\n  conv1\n]\n", ":2: 'conv1' is no TOML: "},
        {"freeze = [\n\"conv1\"\n", " is no TOML: "},
        {"steps = \n", ":1: 'steps =' is no TOML: "},
        {"steps = 7\nsteps = 8\n", ":2: 'steps = 8' is no TOML: "}}) {
    file.write(text);
    const std::string message = refusal({"--config", file.path});
    INFO(text << " gives " << message);
    CHECK(message.starts_with(file.path + ":"));
    CHECK(message.find(finding) != std::string::npos);
    CHECK((std::string_view(finding).ends_with(": ") || message.ends_with(finding)));
    CHECK((!std::string_view(finding).ends_with(": ") || message.find("write ") == std::string::npos));
  }
}

TEST_CASE("nothing in a file is ignored") {
  const ConfigText file;
  for (const auto& [text, finding] :
       {std::pair("# sections\n[training]\nsteps = 7\n",
                  ":2: [training] is a section, and options stand at the top of the file, in no section"),
        {"[training]\n", ":1: [training] is a section"},
        {"steps = 7\n[[run]]\n", ":2: [run] is a section"},
        {"training.steps = 7\n", ":1: [training] is a section"},
        {"group = {name = 1}\n", ":1: [group] is a section"},
        {"steps = 2026-01-01\n", ":1: steps: an option's value is a number"},
        {"freeze = [['a']]\n", ":1: freeze: an option's value is a number"},
        {"save = \"a\\u0000b\"\n", ":1: save: an option's value is a number"},
        {"epochs = 2\nfreeze = []\n", ":2: freeze: an empty array sets nothing"},
        {"steps = 1.0\n", ":1: --steps: '1.0' is no whole number"},
        {"epochs = 2\nsteps = 'ten'\n", ":2: --steps: 'ten' is no whole number"},
        {"steps = [1, 2]\n", ":1: --steps"},
        {"momentum = nan\n", ":1: --momentum: nan is no finite number"},
        {"steps = 7\n--steps = 8\n", ":2: --steps is set twice"},
        {"config = 'other.toml'\n", ":1: config is for the command line"},
        {"'++' = 1\n", ":1: there is no option ++"},
        {"-- = 1\n", ":1: there is no option --"}}) {
    file.write(text);
    INFO(text);
    require_mentions(refusal({"--config", file.path}), {file.path + finding});
  }
  file.write("steps = 7\n");
  CHECK(refusal({"--steps", "ten", "--config", file.path}).starts_with("--steps: 'ten'"));  // the command line's
}

TEST_CASE("a gradient is clipped in one way") {
  REQUIRE(parsed({"--clip-value", "0.5"}).clip_value == 0.5);
  require_mentions(refusal({"--clip-value", "0.5", "--clip-norm", "1"}),
                   {"(--clip-norm)", "(--clip-value)", "not both"});
}

TEST_CASE("epochs are the application's where no length is given") {
  REQUIRE(parsed({}).epochs == 3U);
  REQUIRE(!parsed({"--steps", "7"}).epochs);
  REQUIRE(parsed({"--epochs", "2", "--steps", "7"}).epochs == 2U);
}

TEST_CASE("a number with a comma, a letter or a fraction is told in a line") {
  for (const std::string number : {"--learning-rate", "--momentum", "--clip-norm", "--validation-split"}) {
    const std::string text = refusal({number, "0,1"});
    require_mentions(text, {number, "'0,1' is no number: write 0.1, with a point"});
    REQUIRE(text.size() < 120);
    require_mentions(refusal({number, "0.9x"}), {number, "'0.9x' is no number"});
  }
  for (const std::string count : {"--epochs", "--threads", "--keep", "--batch-size"})
    for (const std::string value : {"1,5", "1.5", "1e3", "ten"})
      require_mentions(refusal({count, value}), {count, "'" + value + "' is no whole number"});
  require_mentions(refusal({"--learning-rate", "-0.5"}), {"--learning-rate", "a number from 0 on, not -0.5"});
  require_mentions(refusal({"--steps", "18446744073709551616"}), {"--steps", "too large"});
  REQUIRE(parsed({"--steps", "010"}).steps == 10U);  // not eight
}

TEST_CASE("an unknown option is named, with the one that was probably meant") {
  const auto require_suggests = [](const std::vector<std::string>& words, const std::string& meant) {
    require_mentions(refusal(words),
                     {"no option " + words[0].substr(0, words[0].find('=')), "did you mean " + meant + "?"});
  };
  require_suggests({"--learning-rte", "0.1"}, "--learning-rate");
  require_suggests({"--learning_rate=0.1"}, "--learning-rate");
  require_suggests({"-epochs", "3"}, "--epochs");
  require_suggests({"--epoch", "3"}, "--epochs");
  require_suggests({"--bacth-size", "3"}, "--batch-size");
  REQUIRE(refusal({"--horse"}).find("did you mean") == std::string::npos);
  REQUIRE(refusal({"--injekt"}).find("did you mean") == std::string::npos);  // it is not in --help
  require_mentions(refusal({"stray"}), {"'stray' belongs to no option"});
}

TEST_CASE("an unknown key of a configuration file is named, with the one that was probably meant") {
  const ConfigText file;
  file.write("epochs = 2\nlearning-rte = 0.1\n");
  require_mentions(refusal({"--config", file.path}),
                   {file.path + ":2: there is no option learning-rte; did you mean learning-rate?", "program --help"});
}

TEST_CASE("who moves messages along has a name that is not the progress bar's, and the old one still") {
  for (const std::string name : {"--communication-progress", "--progress"})
    REQUIRE(parsed_all({name, "thread"}).world.progress == Progress::thread);
}
