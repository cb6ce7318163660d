// How an application says what the library says of options.
#include "../../apps/option_names.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"

#include <ronda/core/error.hpp>
#include <ronda/runtime/io/console.hpp>

#include <sstream>
#include <string>

using namespace ronda;
using namespace ronda::test;

namespace {

apps::OptionNames names() {
  apps::OptionNames names;
  names.add("batch_size", "batch-size");
  names.add("precision", "dtype");
  names.add("beta1", "beta1");
  names.add("local_sgd.outer_rate", "outer-rate");
  names.add_flag("sparse = false", "whole-gradients");
  return names;
}

}  // namespace

TEST_CASE("fields become the command line's options, and nothing else does") {
  const auto said = [](const std::string& text) { return names().on_command_line(text); };
  CHECK(said(".batch_size = 64 is too much") == "--batch-size 64 is too much");
  CHECK(said("take another .precision") == "take another --dtype");
  CHECK(said("a batch (.batch_size) and .beta1, .precision.") == "a batch (--batch-size) and --beta1, --dtype.");
  CHECK(said(".local_sgd.outer_rate = 0.5, .beta1.") == "--outer-rate 0.5, --beta1.");
  CHECK(said("an embedding with .sparse = false.") == "an embedding with --whole-gradients.");
  for (const char* text : {".local_sgd.inner_rate", ".local_sgd", "", ".", "...", "0.5", "file.batch_size",
                           "a/.batch_size", ".batch_sizes", ".batch", "no. beta1", "it is over.batch_size",
                           ".horse = 1", ".sparse = true", "a.sparse = false"})
    CHECK(said(text) == text);
  CHECK(names().field_of("dtype") == "precision");
  CHECK(names().field_of("horse").empty());
}

TEST_CASE("a value that looks like a field stays as it was given") {
  apps::OptionNames known = names();
  for (const char* value : {".batch_size", "my .beta1 data", "(.precision)", "plain"}) known.keep_value(value);
  const auto said = [&](const std::string& text) { return known.on_command_line(text); };
  CHECK(said("cannot open .batch_size/labels: .beta1 = 3") == "cannot open .batch_size/labels: --beta1 3");
  CHECK(said("cannot open my .beta1 data; .beta1") == "cannot open my .beta1 data; --beta1");
  CHECK(said(".batch_size = .batch_size is no number") == "--batch-size .batch_size is no number");
  CHECK(said("a folder (.precision), .precision") == "a folder (.precision), --dtype");
}

TEST_CASE("an error keeps its kind, its status and whether all ranks throw it") {
  const auto translated = [](const auto& error) { names().translate_errors([&] { throw error; }); };
  CHECK_THROWS_AS(translated(InputError(".batch_size")), InputError);
  CHECK_THROWS_AS(translated(ResourceError(".batch_size")), ResourceError);
  CHECK_THROWS_AS(translated(CommunicationError(".batch_size")), CommunicationError);
  CHECK_THROWS_AS(translated(DeviceError(".batch_size")), DeviceError);
  CHECK_THROWS_AS(translated(LogicError(".batch_size")), LogicError);
  CHECK_THROWS_AS(translated(std::runtime_error("stays")), std::runtime_error);
  for (const bool agreed : {false, true}) try {
      Error error(".batch_size = 3", ExitStatus::stopped_resumable);
      if (agreed) error.set_agreed();
      translated(error);
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      CHECK(std::string(error.what()) == "--batch-size 3");
      CHECK(error.status() == ExitStatus::stopped_resumable);
      CHECK(error.agreed() == agreed);
    }
}

TEST_CASE("notes and warnings are translated, and all else is passed on") {
  std::ostringstream table, messages;
  Console console(table, messages, {.verbosity = Verbosity::verbose});
  const apps::OptionNames known = names();
  apps::NamingSink sink(known, console);
  sink.on_note("take .batch_size = 4");
  sink.on_detail(".precision");
  sink.on_warning("(.beta1)");
  CHECK(messages.str() == "ronda: take --batch-size 4\nronda: --dtype\nronda: warning: (--beta1)\n");
  sink.on_start({.metric = {"mae", false}});
  sink.on_epoch({});
  require_mentions(table.str(), {"train mae"});
}
