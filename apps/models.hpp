#pragma once
#include <cstdint>
#include <span>
#include <string>

#include <ronda/core/text.hpp>
#include <ronda/data/labelled_text.hpp>
#include <ronda/layers/layers.hpp>

namespace ronda::apps {

class CommandLine;

/// A multi-layer perceptron: dense layers with ReLUs between them. Without hidden ones a linear model.
inline Sequential perceptron(std::span<const std::int64_t> hidden, std::int64_t outputs) {
  Sequential model;
  for (const std::int64_t size : hidden) {
    model.add(Dense(size));
    model.add(ReLU());
  }
  model.add(Dense(outputs));
  return model;
}

/// The same for images, which are made flat.
inline Sequential flat_perceptron(std::span<const std::int64_t> hidden, std::int64_t outputs) {
  return Sequential(Flatten(), perceptron(hidden, outputs));
}

/// Three convolutions, two dense layers, for ten classes.
inline Sequential small_cnn() {
  return Sequential(Conv2d(32, 3), ReLU(), MaxPool2d(2),  //
                    Conv2d(64, 3), ReLU(), MaxPool2d(2),  //
                    Conv2d(64, 3), ReLU(), Flatten(),     //
                    Dense(64), ReLU(), Dense(10));
}

/// The mean of the embeddings of a text's tokens, and a dense layer (Joulin et al., "Bag of tricks for efficient text
/// classification", EACL 2017).
/// @param sparse  whether a step sends and updates only the rows that it touched
inline Sequential bag_of_words(std::int32_t tokens, std::int64_t width, std::int64_t classes, bool sparse = true) {
  const EmbeddingOptions table{.padding = Tokenizer::padding, .sparse = sparse};
  return Sequential(EmbeddingBag(tokens, width, BagMode::mean, table), Dense(classes));
}

/// Two convolutions with a shortcut around them, and a ReLU of their sum. If the number of channels changes, the
/// shortcut is a convolution of single pixels.
inline Sequential residual_block(std::int64_t channels, bool widens = false) {
  const Sequential main(Conv2d(channels, 3, 1, 1), ReLU(), Conv2d(channels, 3, 1, 1));
  return widens ? Sequential(Residual(main, Conv2d(channels, 1)), ReLU()) : Sequential(Residual(main), ReLU());
}

/// A residual network of eight convolutions for images (N, H, W, C) and ten classes (after He et al., "Deep residual
/// learning for image recognition", CVPR 2016, without batch normalisation).
inline Sequential residual_network() {
  return Sequential(Conv2d(16, 3, 1, 1), ReLU(), residual_block(16), MaxPool2d(2),  //
                    residual_block(32, true), MaxPool2d(2),                         //
                    residual_block(32), AveragePool2d(7), Flatten(), Dense(10));
}

struct GptOptions {
  std::int64_t layers = 6, heads = 6, width = 384, context = 128;
  double dropout = 0;
};

/// A decoder of transformer blocks that are normalised before each part, as GPT-2 (Radford et al., "Language models are
/// unsupervised multitask learners", 2019). It maps bytes, int32 (N, context), to scores of the next byte, (N, context,
/// 256).
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

/// Residual networks with batch normalisation (He et al., "Deep residual learning for image recognition", CVPR 2016),
/// with torchvision's shapes, for images (N, H, W, C).
class ResNet {
 public:
  /// @param synchronized  batches are normalised over all ranks: N ranks train what one does
  explicit ResNet(bool synchronized) : synchronized_(synchronized) {}

  /// ResNet-18 for images of 32 x 32 pixels: one convolution of 3 x 3 before the blocks, and no pooling.
  [[nodiscard]] Sequential small18(std::int64_t classes) const {
    Sequential model(convolution(64, 3), ReLU());
    for (const std::int64_t channels : {64, 128, 256, 512}) {
      const bool same_shape = channels == 64;
      model.add(same_shape ? block(basic(channels, 1)) : block(basic(channels, 2), convolution(channels, 1, 2)));
      model.add(block(basic(channels, 1)));
    }
    return with_head(std::move(model), classes);
  }

  /// ResNet-50; the stride of a block is in its convolution of 3 x 3, as torchvision has it.
  [[nodiscard]] Sequential large50(std::int64_t classes) const {
    Sequential model(convolution(64, 7, 2), ReLU(), MaxPool2d(3, 2, 1));
    std::int64_t channels = 64;
    for (const int blocks : {3, 4, 6, 3}) {
      const std::int64_t stride = channels == 64 ? 1 : 2;
      model.add(block(bottleneck(channels, stride), convolution(4 * channels, 1, stride)));
      for (int i = 1; i < blocks; ++i) model.add(block(bottleneck(channels, 1)));
      channels *= 2;
    }
    return with_head(std::move(model), classes);
  }

 private:
  /// And its normalisation.
  [[nodiscard]] Sequential convolution(std::int64_t channels, std::int64_t kernel, std::int64_t stride = 1) const {
    Sequential layers(Conv2d(channels, kernel, {.stride = stride, .padding = kernel / 2, .bias = false}));
    if (synchronized_)
      layers.add(SyncBatchNorm());
    else
      layers.add(BatchNorm());
    return layers;
  }
  [[nodiscard]] Sequential basic(std::int64_t channels, std::int64_t stride) const {
    return Sequential(convolution(channels, 3, stride), ReLU(), convolution(channels, 3));
  }
  [[nodiscard]] Sequential bottleneck(std::int64_t channels, std::int64_t stride) const {
    return Sequential(convolution(channels, 1), ReLU(), convolution(channels, 3, stride), ReLU(),
                      convolution(4 * channels, 1));
  }
  static Sequential block(const Sequential& main) { return Sequential(Residual(main), ReLU()); }
  static Sequential block(const Sequential& main, const Sequential& shortcut) {
    return Sequential(Residual(main, shortcut), ReLU());
  }
  static Sequential with_head(Sequential model, std::int64_t classes) {
    model.add(GlobalAveragePool());
    model.add(Flatten());
    model.add(Dense(classes));
    return model;
  }

  bool synchronized_;
};

/// --sync-batch-norm.
/// @param synchronized  is set; its value is the default
void add_sync_batch_norm(CommandLine& command_line, bool& synchronized);

}  // namespace ronda::apps
