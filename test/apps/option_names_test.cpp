// The names of settings on a command line.
#include "../../apps/option_names.hpp"
#include "support/catch.hpp"

#include <ronda/core/message.hpp>

using namespace ronda;

namespace {

apps::OptionNames names() {
  apps::OptionNames names;
  names.add("batch_size", "batch-size");
  names.add("precision", "dtype");
  names.add("local_sgd.outer_rate", "outer-rate");
  names.add_flag("sparse", "false", "whole-gradients");
  return names;
}

}  // namespace

TEST_CASE("settings become the command line's options") {
  const auto said = [](const Message& message) { return message.text_with(names()); };
  CHECK(said(setting("batch_size", 64) + " is too much") == "--batch-size 64 is too much");
  CHECK(said("take another " + setting("precision") + ".") == "take another --dtype.");
  CHECK(said(setting("local_sgd.outer_rate", "0.5")) == "--outer-rate 0.5");
  CHECK(said("an embedding with " + setting("sparse", false)) == "an embedding with --whole-gradients");
}

TEST_CASE("a setting without an option stays as in C++") {
  const auto said = [](const Message& message) { return message.text_with(names()); };
  CHECK(said(setting("local_sgd.inner_rate")) == ".local_sgd.inner_rate");
  CHECK(said(setting("sparse", true) + " or " + setting("sparse")) == ".sparse = true or .sparse");
}

TEST_CASE("texts and values that look like settings stay as they are") {
  const auto said = [](const Message& message) { return message.text_with(names()); };
  for (const char* text : {".batch_size = 64", "0.5", "a/.batch_size", "(.precision)", ""}) CHECK(said(text) == text);
  CHECK(said(setting("batch_size", ".batch_size")) == "--batch-size .batch_size");
}

TEST_CASE("an option's name leads to its field") {
  CHECK(names().field_of("dtype") == "precision");
  CHECK(names().field_of("horse").empty());
}
