#pragma once
#include <string>

#include <ronda/core/text.hpp>
#include <ronda/layers/layers.hpp>

#include "command_line.hpp"

namespace ronda::apps {

struct GptOptions {
  std::int64_t layers = 6, heads = 6, width = 384, context = 128;
  double dropout = 0;
};

/// A decoder of transformer blocks that are normalised before each part, as GPT-2 (Radford et al., "Language models are
/// unsupervised multitask learners", 2019): of bytes, int32 (N, context), to (N, context, 256), what byte comes next.
/// The last layer's weight is the table of embeddings.
[[nodiscard]] inline Sequential gpt(const GptOptions& options) {
  constexpr std::int64_t bytes = 256;
  const Embedding table(bytes, options.width, {.initializer = Initializer::glorot_normal});
  Sequential model(table, PositionalEmbedding(options.context, Initializer::glorot_normal), Dropout(options.dropout));
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    model.add(Residual(Sequential(LayerNorm(),
                                  MultiHeadAttention(options.heads, {.causal = true, .dropout = options.dropout}),  //
                                  Dropout(options.dropout))));
    model.add(Residual(Sequential(LayerNorm(), Dense(4 * options.width), GELU(), Dense(options.width),  //
                                  Dropout(options.dropout))));
  }
  model.add(LayerNorm());
  model.add(Dense(table));
  return model;
}

/// For TrainingOptions::variant.
[[nodiscard]] inline std::string text_of(const GptOptions& options) {
  TextWriter text;
  text << options.layers << " layers of " << options.width << ", " << options.heads << " heads, context "
       << options.context << ", dropout " << options.dropout;
  return text.str();
}

/// --context, --layers, --heads, --width and --dropout.
void add_gpt_options(CommandLine& command_line, GptOptions& options);

}  // namespace ronda::apps
