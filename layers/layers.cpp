// Layers whose building is more than a line.
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/convolution.hpp>
#include <ronda/layers/dense.hpp>
#include <ronda/layers/dropout.hpp>
#include <ronda/layers/embedding.hpp>
#include <ronda/layers/multi_head_attention.hpp>
#include <ronda/layers/normalization.hpp>

#include <string>

namespace ronda {
namespace {

/// Shapes are checked before parameters are asked for: a shape that does not fit is the better message.
template <class Spec>
Value build_trained(const Layer& layer, const Spec& spec, const Value& x, const Shape& weight, std::int64_t fan_in,
                    std::int64_t fan_out, GraphBuilder& builder) {
  std::vector<ParameterId> parameters{builder.parameter(layer, "weight", weight, {fan_in, fan_out})};
  if (spec.bias) parameters.push_back(builder.parameter(layer, "bias", {spec.outputs}));
  return builder.apply(spec, {x}, std::move(parameters), {}, &layer);
}

/// @param stride  as the layer has it
void pad_to_same(ConvolutionSpec& spec, const std::string& stride) {
  if (spec.stride != 1)
    throw InputError("a convolution with " + setting("padding", "same_padding") + " has " + setting("stride", "1") +
                     ", not " + stride);
  const auto& [height, width] = spec.kernel;
  const HeightWidth zeros{spec.dilation.height * (height - 1), spec.dilation.width * (width - 1)};
  spec.padding = {zeros.height / 2, zeros.width / 2};
  spec.trailing = {zeros.height % 2, zeros.width % 2};
}

Value build_convolution(const Layer& layer, const ConvolutionSpec& spec, const Value& x, GraphBuilder& builder) {
  static_cast<void>(output_shape(spec, {&x.shape, 1}));
  const Shape weight = weight_shape(spec, x.shape);
  const std::int64_t window = spec.kernel.area();
  return build_trained(layer, spec, x, weight, weight[1] * window, spec.outputs * window, builder);
}

/// What normalised numbers are multiplied with and added to: 1 and 0 at first.
std::vector<ParameterId> factor_and_bias(const Layer& layer, const Shape& shape, bool bias, GraphBuilder& builder) {
  std::vector<ParameterId> parameters{builder.parameter(layer, "weight", shape, {1, 1, Initializer::ones})};
  if (bias) parameters.push_back(builder.parameter(layer, "bias", shape));
  return parameters;
}

ParameterId table_of(const Layer& layer, const EmbeddingSpec& spec, const EmbeddingOptions& options,
                     GraphBuilder& builder) {
  ParameterOptions parameter{
      .fan_in = spec.width, .fan_out = spec.rows, .initializer = options.initializer, .sparse = options.sparse};
  if (spec.padding >= 0) parameter.zero_row = spec.padding;
  return builder.parameter(layer, "weight", {spec.rows, spec.width}, parameter);
}

Value build_embedding(const Layer& layer, const EmbeddingSpec& spec, const EmbeddingOptions& options,
                      const Value& tokens, GraphBuilder& builder) {
  static_cast<void>(output_shape(spec, {&tokens.shape, 1}));
  return builder.apply(spec, {tokens}, {table_of(layer, spec, options, builder)}, {}, &layer);
}

}  // namespace

Value Dense::build(Value x, GraphBuilder& builder) const {
  static_cast<void>(output_shape(spec_, {&x.shape, 1}));
  const std::int64_t inputs = x.shape[x.shape.rank() - 1];
  if (!table_) return build_trained(*this, spec_, x, {spec_.outputs, inputs}, inputs, spec_.outputs, builder);
  if (table_->width() != inputs)
    throw InputError("a dense layer with a table of width " + std::to_string(table_->width()) +
                     " takes as many features, not " + x.shape.text());
  std::vector<ParameterId> parameters{table_->table(builder)};
  if (spec_.bias) parameters.push_back(builder.parameter(*this, "bias", {spec_.outputs}));
  return builder.apply(spec_, {x}, std::move(parameters), {}, this);
}

Conv2d::Conv2d(std::int64_t outputs, HeightWidth kernel, const Conv2dOptions& options)
    : spec_{.outputs = outputs,
            .kernel = kernel,
            .stride = options.stride,
            .padding = options.padding,
            .bias = options.bias,
            .dilation = options.dilation,
            .groups = options.groups} {
  if (options.padding == same_padding) pad_to_same(spec_, options.stride.text());
}

Value Conv2d::build(Value x, GraphBuilder& builder) const {
  if (x.shape.rank() != 4) throw InputError("a convolution of images takes (N, H, W, C), not " + x.shape.text());
  return build_convolution(*this, spec_, x, builder);
}

Conv1d::Conv1d(std::int64_t outputs, std::int64_t kernel, const Conv1dOptions& options)
    : spec_{.outputs = outputs,
            .kernel = {1, kernel},
            .stride = {1, options.stride},
            .padding = {0, options.padding},
            .bias = options.bias,
            .dilation = {1, options.dilation},
            .groups = options.groups} {
  if (options.padding == same_padding) pad_to_same(spec_, std::to_string(options.stride));
}

Value Conv1d::build(Value x, GraphBuilder& builder) const {
  if (x.shape.rank() != 3) throw InputError("a convolution of sequences takes (N, T, C), not " + x.shape.text());
  return build_convolution(*this, spec_, x, builder);
}

BatchNorm::BatchNorm(float epsilon, float momentum, bool affine)
    : BatchNorm(BatchNormSpec{.momentum = momentum, .epsilon = epsilon, .affine = affine}) {}

BatchNorm::BatchNorm(const BatchNormSpec& spec) : spec_(spec) {
  if (!(spec.epsilon >= 0)) throw InputError("a batch norm's epsilon is at least 0, not " + shortest(spec.epsilon));
  if (!(spec.momentum >= 0 && spec.momentum <= 1))
    throw InputError("a batch norm's momentum is from 0 to 1, not " + shortest(spec.momentum));
}

Value BatchNorm::build(Value x, GraphBuilder& builder) const {
  static_cast<void>(output_shape(spec_, {&x.shape, 1}));
  const Shape channels{x.shape[x.shape.rank() - 1]};
  std::vector<ParameterId> parameters;
  if (spec_.affine) parameters = factor_and_bias(*this, channels, true, builder);
  BatchNormSpec spec = spec_;
  spec.held = builder.holds(*this, "running_mean");
  spec.synchronized = spec.synchronized && !spec.held;
  const Scope scope = spec.synchronized || spec.held ? Scope::replicated : Scope::averaged;
  std::vector<StateId> states{builder.state(*this, "running_mean", channels, DType::float32, 0, scope),
                              builder.state(*this, "running_var", channels, DType::float32, 1, scope),
                              builder.state(*this, "num_batches_tracked", {}, DType::int64, 0, Scope::replicated)};
  return builder.apply(spec, {x}, std::move(parameters), std::move(states), this);
}

Value LayerNorm::build(Value x, GraphBuilder& builder) const {
  const Shape shape = normalized_shape(spec_, x.shape);
  std::vector<ParameterId> parameters;
  if (spec_.affine) parameters = factor_and_bias(*this, shape, spec_.bias, builder);
  return builder.apply(spec_, {x}, std::move(parameters), {}, this);
}

Value Embedding::build(Value tokens, GraphBuilder& builder) const {
  return build_embedding(*this, spec_, options_, tokens, builder);
}

ParameterId Embedding::table(GraphBuilder& builder) const { return table_of(*this, spec_, options_, builder); }

Value EmbeddingBag::build(Value tokens, GraphBuilder& builder) const {
  return build_embedding(*this, spec_, options_, tokens, builder);
}

Value PositionalEmbedding::build(Value x, GraphBuilder& builder) const {
  static_cast<void>(output_shape(spec_, {&x.shape, 1}));
  const std::int64_t width = x.shape[2];
  const ParameterId weight = builder.parameter(*this, "weight", {spec_.rows, width},
                                               {.fan_in = width, .fan_out = spec_.rows, .initializer = initializer_});
  return builder.apply(spec_, {x}, {weight}, {}, this);
}

Value MultiHeadAttention::build(Value x, GraphBuilder& builder) const {
  if (x.shape.rank() != 3) throw InputError("an attention takes (N, T, width), not " + x.shape.text());
  const std::int64_t width = x.shape[2];
  if (spec_.heads > 0 && width % spec_.heads != 0)
    throw InputError("an attention of " + std::to_string(spec_.heads) +
                     " heads takes (N, T, width), with a width that they divide, not " + x.shape.text());
  const Shape packed{x.shape[0], x.shape[1], 3 * width};
  static_cast<void>(output_shape(spec_, {&packed, 1}));
  const auto project = [&](const Value& from, std::int64_t outputs, const char* weight, const char* bias) {
    std::vector<ParameterId> parameters{builder.parameter(*this, weight, {outputs, width}, {width, outputs})};
    if (bias_) parameters.push_back(builder.parameter(*this, bias, {outputs}));
    return builder.apply(DenseSpec{.outputs = outputs, .bias = bias_}, {from}, std::move(parameters), {}, this);
  };
  const Value queries_keys_values = project(x, 3 * width, "in_proj_weight", "in_proj_bias");
  std::vector<Value> inputs{queries_keys_values};
  if (!lengths_.empty()) inputs.push_back(builder.input(lengths_));
  const Value attended = builder.apply(spec_, inputs, {}, {}, this);
  return project(attended, width, "out_proj.weight", "out_proj.bias");
}

Dropout::Dropout(double p) : spec_{.p = p} {
  if (!(p >= 0 && p <= 1)) throw InputError("a dropout drops with a probability from 0 to 1, not " + shortest(p));
}

}  // namespace ronda
