#include "byte_sampling.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <CLI/CLI.hpp>

#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>
#include <ronda/data/memory_dataset.hpp>

namespace ronda::apps {

char draw_byte(std::span<const float> outputs, double temperature, double uniform) {
  const auto likeliest = std::ranges::max_element(outputs);
  if (temperature == 0) return static_cast<char>(likeliest - outputs.begin());
  std::vector<double> sums;
  for (const float output : outputs)
    sums.push_back((sums.empty() ? 0 : sums.back()) + std::exp((output - *likeliest) / temperature));
  const auto drawn = std::ranges::upper_bound(sums, uniform * sums.back());
  return static_cast<char>(std::min<std::ptrdiff_t>(drawn - sums.begin(), std::ssize(sums) - 1));
}

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

void add_sampling_options(CommandLine& command_line, SamplingOptions& options) {
  const char* const group = "Text that is written";
  CLI::App& app = command_line.app();
  app.add_option("--sample", options.bytes, "Bytes of text to write after the training")
      ->check(CLI::Range(0, 1 << 24))
      ->group(group);
  app.add_option("--prompt", options.prompt, "What that text begins with [a new line]")->default_str("")->group(group);
  app.add_option("--temperature", options.temperature, "Of its bytes: below 1 likelier ones, 0 the likeliest")
      ->check(CLI::Range(0.0, 100.0))
      ->group(group);
  command_line.check_by([&options] {
    if (options.prompt.empty()) throw InputError("--prompt has at least one byte");
  });
}

}  // namespace ronda::apps
