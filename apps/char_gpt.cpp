// A language model of bytes: a transformer that learns a text, any file, and writes more of it.
#include <iostream>
#include <optional>
#include <sstream>

#include <CLI/CLI.hpp>

#include <ronda/core/text.hpp>
#include <ronda/data/dataset_part.hpp>
#include <ronda/data/text_windows.hpp>

#include "byte_sampling.hpp"
#include "gpt.hpp"
#include "model_card.hpp"
#include "training_application.hpp"

namespace {

using namespace ronda;

struct CharGptOptions {
  std::filesystem::path data;
  double test_split = 0.1;
  bool vary_windows = false;
  apps::GptOptions model;
  apps::SamplingOptions sampling;
};

void add_options(apps::CommandLine& command_line, CharGptOptions& options) {
  CLI::App& app = command_line.app();
  const char* const group = "Data and length";
  app.add_option("--data", options.data, "The text, a file of any bytes")->required()->group(group);
  app.add_option("--test-split", options.test_split, "Share of the text, its end, that is kept for tests")
      ->check(CLI::Range(0.0, 0.9))
      ->group(group);
  app.add_flag("--vary-windows", options.vary_windows, "Cut the text elsewhere in each epoch: less is learnt by heart")
      ->group(group);
  apps::add_gpt_options(command_line, options.model);
  apps::add_sampling_options(command_line, options.sampling);
}

/// Collective, as Predictor::take; rank 0 writes.
void write_text(const Layer& model, Strategy& strategy, const CharGptOptions& options) {
  const Field window{"input", Shape{options.model.context}, DType::int32};
  Predictor predictor(model, {&window, 1}, {.batch_size = 1});
  predictor.take(strategy);
  if (strategy.communicator().rank() != 0) return;
  std::istringstream text(sample_bytes(predictor, options.model.context, options.sampling));
  for (std::string line; std::getline(text, line);) std::cout << printable(line) << '\n';
  std::cout << std::flush;
}

int run(World& world, apps::CommandLine& command_line, CharGptOptions options) {
  std::optional<TextWindows> text;
  agree(world.communicator(),
        [&] { text.emplace(options.data, options.model.context, TextWindows::Options{.vary = options.vary_windows}); });
  const auto tests = static_cast<std::size_t>(options.test_split * static_cast<double>(text->size()));
  const DatasetPart training(*text, 0, text->size() - tests), test(*text, text->size() - tests, text->size());
  command_line.training.variant = apps::text_of(options.model) + (options.vary_windows ? ", windows vary" : "");
  apps::describe_model(command_line, {{"layers", options.model.layers},
                                      {"heads", options.model.heads},
                                      {"width", options.model.width},
                                      {"context", options.model.context}});
  options.sampling.seed = command_line.training.seed;
  const Sequential model = apps::gpt(options.model);
  const auto write = [&](Strategy& strategy) {
    if (options.sampling.bytes > 0) write_text(model, strategy, options);
  };
  return apps::train(world, command_line, model, SoftmaxCrossEntropy(), training, test,
                     {std::make_shared<BitsPerByte>()}, {}, write);
}

}  // namespace

int main(int argc, char** argv) {
  apps::CommandLine command_line("char_gpt", "Trains a transformer to go on with a text, byte by byte.",
                                 {.epochs = 10, .learning_rate = 0.001, .optimizer = "adamw"});
  CharGptOptions options;
  add_options(command_line, options);
  return apps::launch_with(command_line, argc, argv, [&](World& world) { return run(world, command_line, options); });
}
