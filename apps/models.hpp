#pragma once
#include <cstdint>
#include <span>

#include <ronda/data/tokenizer.hpp>
#include <ronda/layers/layers.hpp>

namespace ronda::apps {

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

}  // namespace ronda::apps
