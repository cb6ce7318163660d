#pragma once
#include <span>
#include <string>

#include <ronda/runtime/trainer/predictor.hpp>

#include "command_line.hpp"

namespace ronda::apps {

struct SamplingOptions {
  std::size_t bytes = 0;
  std::string prompt = "\n";  ///< what they go on from; one byte at least
  double temperature = 1;     ///< that outputs are divided by; 0: always the likeliest byte
  std::uint64_t seed = 1;
};

/// A byte by its output: with probability softmax(outputs / temperature).
/// @param uniform  in [0, 1), decides
[[nodiscard]] char draw_byte(std::span<const float> outputs, double temperature, double uniform);

/// The prompt, and the bytes that a model of bytes writes behind it, one after the other, each from the last `context`
/// bytes before it. The same for the same parameters and seed.
/// @param predictor  of a model int32 (1, context) to (1, context, 256), of which no place reads what lies behind it
[[nodiscard]] std::string sample_bytes(Predictor& predictor, std::int64_t context, const SamplingOptions& options);

/// --sample, --prompt and --temperature.
void add_sampling_options(CommandLine& command_line, SamplingOptions& options);

}  // namespace ronda::apps
