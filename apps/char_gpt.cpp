// A language model of bytes: a transformer that learns a text, any file, and writes more of it.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/dataset_part.hpp>
#include <ronda/data/memory_dataset.hpp>
#include <ronda/data/text_windows.hpp>
#include <ronda/runtime/trainer/predictor.hpp>

#include "model_card.hpp"
#include "models.hpp"
#include "training_application.hpp"

namespace {

using namespace ronda;

struct SamplingOptions {
  std::size_t bytes = 0;
  std::string prompt = "\n";  ///< what they go on from; one byte at least
  double temperature = 1;     ///< that outputs are divided by; 0: always the likeliest byte
  std::uint64_t seed = 1;
};

/// A byte by its output: with probability softmax(outputs / temperature).
/// @param uniform  in [0, 1), decides
char draw_byte(std::span<const float> outputs, double temperature, double uniform) {
  const auto likeliest = std::ranges::max_element(outputs);
  if (temperature == 0) return static_cast<char>(likeliest - outputs.begin());
  std::vector<double> sums;
  for (const float output : outputs)
    sums.push_back((sums.empty() ? 0 : sums.back()) + std::exp((output - *likeliest) / temperature));
  const auto drawn = std::ranges::upper_bound(sums, uniform * sums.back());
  return static_cast<char>(std::min<std::ptrdiff_t>(drawn - sums.begin(), std::ssize(sums) - 1));
}

/// The prompt, followed by the bytes that a model of bytes adds to it, each from the last `context` bytes. The same for
/// the same parameters and seed.
/// @param predictor  its model maps int32 (1, context) to (1, context, 256), and no position reads later positions
std::string sample_bytes(Predictor& predictor, std::int64_t context, const SamplingOptions& options) {
  const RngKey key(options.seed, Purpose::sampling);
  const auto longest = static_cast<std::size_t>(context);
  std::string text = options.prompt;
  for (std::size_t i = 0; i < options.bytes; ++i) {
    const std::size_t known = std::min(text.size(), longest);
    std::vector<std::int32_t> window(longest);
    std::ranges::transform(text.end() - static_cast<std::ptrdiff_t>(known), text.end(), window.begin(),
                           [](char byte) { return static_cast<unsigned char>(byte); });
    const Predictions next = predictor.predict(MemoryDataset({Column{"input", Shape{context}, std::move(window)}}));
    const std::size_t bytes = next.values.size() / longest;
    text += draw_byte(std::span(next.values).subspan((known - 1) * bytes, bytes), options.temperature, key.uniform(i));
  }
  return text;
}

/// --sample, --prompt and --temperature.
void add_sampling_options(apps::CommandLine& command_line, SamplingOptions& options) {
  const char* const group = "Text that is written";
  CLI::App& app = command_line.app();
  app.add_option("--sample", options.bytes, "Bytes of text to write after the training")
      ->check(CLI::Range(0, 1 << 24))
      ->group(group);
  app.add_option("--prompt", options.prompt, "Beginning of that text [a new line]")->default_str("")->group(group);
  app.add_option("--temperature", options.temperature,
                 "Randomness of the bytes: 0 takes the likeliest; below 1 prefers likely bytes")
      ->check(CLI::Range(0.0, 100.0))
      ->group(group);
  command_line.check_by([&options] {
    if (options.prompt.empty()) throw InputError("--prompt has at least one byte");
  });
}

struct CharGptOptions {
  std::filesystem::path data;
  double test_split = 0.1;
  bool vary_windows = false;
  apps::GptOptions model;
  SamplingOptions sampling;
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
  add_sampling_options(command_line, options.sampling);
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
