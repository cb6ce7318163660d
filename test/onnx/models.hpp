#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/random.hpp>
#include <ronda/layers/custom_operation.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/onnx/onnx_writer.hpp>

#include "support/operations.hpp"

namespace ronda::test {

/// Numbers for what a graph trains and keeps, by their names: about as large as after a training; none is 0 or 1, so
/// that one that is left out is missed.
inline std::vector<NamedTensor> made_tensors(const Graph& graph) {
  std::vector<NamedTensor> tensors;
  const auto add = [&](const std::string& name, const Shape& shape, float scale, float offset) {
    const RngKey key(3, Purpose::test, name);
    NamedTensor tensor{name, shape};
    std::vector<float> drawn;  // again and again: a large table costs no draws
    for (std::uint64_t i = 0; i < 4096; ++i) drawn.push_back(offset + scale * (2 * key.uniform(i) - 1));
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape.count()); ++i)
      tensor.values.push_back(drawn[i % drawn.size()]);
    tensors.push_back(std::move(tensor));
  };
  for (const GraphParameter& parameter : graph.parameters) {
    const bool factor = parameter.initializer == Initializer::ones;  // of a norm
    const auto fan_in = static_cast<float>(std::max<std::int64_t>(parameter.fan_in, 1));
    add(parameter.name, parameter.shape, factor ? 0.4F : std::min(0.8F, 1.7F / std::sqrt(fan_in)), factor ? 0.9F : 0);
  }
  for (const GraphState& state : graph.states)
    if (state.dtype == DType::float32) add(state.name, state.shape, 0.3F, state.name.ends_with("var") ? 0.8F : 0);
  return tensors;
}

/// max(x, 0) + a · min(x, 0), by a slope for each feature.
class PReLU final : public Layer {
 public:
  explicit PReLU(bool translated = true) : translated_(translated) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "prelu"; }
  Value build(Value x, GraphBuilder& b) const override {
    const auto slope = b.parameter(*this, "weight", {x.shape[1]}, {.fan_in = 1, .fan_out = 1});
    if (!translated_) return b.apply(std::make_shared<Loops>(), {x}, {slope}, {}, this);
    return b.apply(std::make_shared<Translated>(), {x}, {slope}, {}, this);
  }

 private:
  class Loops : public CustomOperation {
   public:
    [[nodiscard]] std::string_view kind() const noexcept override { return "prelu"; }
    [[nodiscard]] Shape output(std::span<const Shape> inputs) const override { return inputs[0]; }
    void forward(const CustomArguments& arguments, const Pass&) const override {
      const auto x = arguments.input(), a = arguments.parameter();
      const auto y = arguments.output();
      for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] > 0 ? x[i] : a[i % a.size()] * x[i];
    }
    void backward(const CustomArguments&, const Pass&) const override {}
  };
  class Translated final : public Loops, public OnnxTranslation {
   public:
    std::string to_onnx(OnnxWriter& onnx) const override {
      return onnx.apply("PRelu", {onnx.input(), onnx.parameter()});
    }
  };

  bool translated_;
};

/// A small model around each translation, with the fields of its data.
struct SmallModel {
  std::string name;
  Sequential model;
  std::vector<Field> fields;
  std::int32_t least = 0, most = 6;  ///< of whole numbers
};

inline std::vector<SmallModel> small_models() {
  const std::vector<Field> image{{"input", {9, 7, 4}}}, features{{"input", {12}}}, steps{{"input", {5, 8}}},
      tokens{{"input", {5}, DType::int32}}, grid{{"input", {3, 4}, DType::int32}};
  const std::vector<Field> padded{{"input", {5, 8}}, {"length", {}, DType::int32}};
  const EmbeddingOptions zero_pads{.padding = 0};
  std::vector<SmallModel> all{
      {"conv", Sequential(Conv2d(6, 3), ReLU(), MaxPool2d(2), Conv2d(3, 2), Flatten(), Dense(5)), image},
      {"conv_unequal", Sequential(Conv2d(6, {1, 5}, {.stride = {2, 1}, .padding = {0, 3}, .bias = false})), image},
      {"conv_same", Sequential(Conv2d(6, {4, 3}, {.padding = same_padding, .dilation = {1, 2}})), image},
      {"conv_groups", Sequential(Conv2d(8, 3, {.padding = 1, .groups = 4}), Conv2d(4, 1, {.groups = 2})), image},
      {"pools", Sequential(MaxPool2d({3, 2}, {2, 1}, {1, 0}), AveragePool2d(3, 2, 1), GlobalAveragePool(), Flatten()),
       image},
      {"layer_norm_pixels", Sequential(LayerNorm()), image},
      {"layer_norm_images", Sequential(LayerNorm(3)), image},
      {"batch_norm_images", Sequential(BatchNorm(), ReLU(), BatchNorm(1e-3F, 0.1F, false)), image},
      {"concat_images", Sequential(Concat(Conv2d(2, 1), ReLU())), image},
      {"concat_heights", Sequential([](Value x, GraphBuilder& b) {
         return b.apply(ConcatSpec{1}, {x, x});
       }),
       image},
      {"residual", Sequential(Residual(Conv2d(4, 3, 1, 1)), ReLU(), Flatten()), image},
      {"functions",
       Sequential(Dense(12),
                  [](Value x, GraphBuilder& b) {
                    std::vector<Value> values;
                    for (const ElementwiseFunction function : every_function)
                      values.push_back(b.apply(ElementwiseSpec{function}, {x}));
                    return b.apply(ConcatSpec{1}, values);
                  }),
       features},
      {"sum_of_three", Sequential([](Value x, GraphBuilder& b) {
         return b.apply(AddSpec{}, {x, Tanh().build(x, b), x});
       }),
       features},
      {"batch_norm_features", Sequential(Dense(7, false), SyncBatchNorm()), features},
      {"own", Sequential(Dense(7), PReLU(), Dropout(0.5)), features},
      {"batch_norm_steps", Sequential(BatchNorm()), steps},
      {"conv_steps", Sequential(Conv1d(6, 2, {.padding = 1}), ReLU(), MaxPool1d(2, 2, 1), Conv1d(3, 2), Dense(5)),
       steps},
      {"conv_steps_unequal",
       Sequential(Conv1d(4, 2, {.stride = 2, .padding = 2, .groups = 2}),
                  Conv1d(8, 4, {.padding = same_padding, .dilation = 2, .groups = 4, .bias = false})),
       steps},
      {"pools_steps", Sequential(AveragePool1d(3, 2, 1), GlobalAveragePool(), Flatten()), steps},
      {"dense_steps", Sequential(Dense(6), ReLU(), Dense(3, false)), steps},
      {"layer_norm_steps", Sequential(LayerNorm(2), LayerNorm(1, 1e-3F, false), LayerNorm(1, 1e-5F, true, false)),
       steps},
      {"flat_steps", Sequential(Flatten(), Dense(3)), steps},
      {"attention", Sequential(PositionalEmbedding(9), MultiHeadAttention(2)), steps},
      {"attention_causal", Sequential(PositionalEmbedding(5), MultiHeadAttention(4, {.causal = true, .bias = false})),
       steps},
      {"attention_padded", Sequential(MultiHeadAttention(2, {.lengths = "length"})), padded},
      {"attention_causal_padded", Sequential(MultiHeadAttention(2, {.causal = true, .lengths = "length"})), padded},
      {"embedding", Sequential(Embedding(6, 4)), tokens, -1},
      {"embedding_padding", Sequential(Embedding(6, 4, zero_pads)), tokens},
      {"embedding_grid", Sequential(Embedding(6, 4), Conv2d(3, 2)), grid, -1},
      {"bag_sum", Sequential(EmbeddingBag(6, 4, BagMode::sum)), tokens, -1},
      {"bag_mean", Sequential(EmbeddingBag(6, 4, BagMode::mean, zero_pads)), tokens, 0, 3},
  };
  const Embedding table(6, 8);
  all.push_back({"tied", Sequential(table, Residual(Dense(8)), Dense(table, true)), tokens, -1});
  return all;
}

}  // namespace ronda::test
