// A text classifier: words as hashed tokens, the mean of their embeddings, a dense layer.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <ronda/core/error.hpp>
#include <ronda/data/labelled_text.hpp>

#include "model_card.hpp"
#include "models.hpp"
#include "training_application.hpp"

namespace {

using namespace ronda;

struct TextOptions {
  std::filesystem::path data = apps::find_shared("reviews");
  std::int32_t tokens = 65536;
  std::int64_t width = 64, words = 64;
  bool whole_gradients = false;
};

void add_options(apps::CommandLine& command_line, TextOptions& options) {
  CLI::App& app = command_line.app();
  app.add_option("--data", options.data,
                 "Folder with train.tsv.gz and test.tsv.gz: a line of names, then label, tab, text")
      ->group("Data and length");
  app.add_option("--words", options.words, "Words of a text that are read, the first")
      ->check(CLI::Range(1, 1 << 20))
      ->group("Data and length");
  app.add_option("--tokens", options.tokens, "Rows of the table of embeddings; words are hashed to them")
      ->check(CLI::Range(2, 1 << 30))
      ->group("Model");
  app.add_option("--width", options.width, "Elements of an embedding")->check(CLI::Range(1, 1 << 20))->group("Model");
  app.add_flag("--whole-gradients", options.whole_gradients,
               "Send and update the whole table in each step, not the touched rows alone")
      ->group("Model");
  command_line.name_flag("sparse", "false", "whole-gradients");
  command_line.check_by([&options] {
    if (options.data.empty())
      throw InputError("the reviews are not beside this program; give their folder by --data DIR");
  });
}

/// A warning about classes without a label: labels must number the classes without gaps. Empty if they do.
std::string missing_classes(std::span<const std::int32_t> labels, std::int32_t classes) {
  std::vector<bool> seen(static_cast<std::size_t>(classes));
  for (const std::int32_t label : labels) seen[static_cast<std::size_t>(label)] = true;
  const auto missing = std::ranges::count(seen, false);
  if (missing == 0) return {};
  const auto first = std::ranges::find(seen, false) - seen.begin();
  return std::to_string(missing) + " of the " + std::to_string(classes) + " classes have no sample to train with, " +
         std::to_string(first) + " the first; labels number the classes 0, 1, 2, ... without gaps";
}

int run(World& world, apps::CommandLine& command_line, const TextOptions& options) {
  LabelledText train, test;
  std::int32_t classes = 0;
  agree(world.communicator(), [&] {
    train = read_labelled_text(options.data / "train.tsv.gz");
    const std::int32_t largest = *std::ranges::max_element(train.labels);
    constexpr std::int32_t most = 1 << 20;
    if (largest >= most)
      throw InputError((options.data / "train.tsv.gz").string() + ": a label of " + std::to_string(largest) +
                       "; labels count the classes from 0 on, below " + std::to_string(most));
    classes = std::max(largest + 1, 2);
    command_line.warn(missing_classes(train.labels, classes));
    test = read_labelled_text(options.data / "test.tsv.gz", {.classes = classes});
  });
  command_line.training.variant = std::to_string(options.tokens) + " tokens of " + std::to_string(options.width) +
                                  ", " + std::to_string(options.words) + " words";
  apps::describe_model(
      command_line,
      {{"tokens", options.tokens}, {"width", options.width}, {"words", options.words}, {"classes", classes}});
  const Sequential model = apps::bag_of_words(options.tokens, options.width, classes, !options.whole_gradients);
  const HashedWords tokenizer(options.tokens);
  return apps::train(world, command_line, model, SoftmaxCrossEntropy(), tokenized(train, tokenizer, options.words),
                     tokenized(test, tokenizer, options.words));
}

}  // namespace

int main(int argc, char** argv) {
  apps::CommandLine command_line("text_classifier", "Trains a classifier of texts, on sentences of reviews.",
                                 {.epochs = 5, .learning_rate = 0.005, .optimizer = "adam", .schedule = "constant"});
  TextOptions options;
  add_options(command_line, options);
  return apps::launch_with(command_line, argc, argv, [&](World& world) { return run(world, command_line, options); });
}
