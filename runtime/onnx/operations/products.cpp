// What multiplies matrices.
#include <ronda/runtime/onnx/operations/translate.hpp>

#include <cmath>
#include <limits>
#include <numeric>

namespace ronda::onnx_operations {
namespace {

std::vector<std::string> with_parameters(const OnnxWriter& onnx) {
  std::vector<std::string> inputs{onnx.input()};
  for (std::size_t i = 0; i < onnx.parameters(); ++i) inputs.push_back(onnx.parameter(i));
  return inputs;
}

/// The steps 0, 1, … of a sample.
std::vector<std::int32_t> counted_up(std::int64_t steps) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(steps));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

}  // namespace

std::string translate(const DenseSpec& spec, OnnxWriter& onnx) {
  if (onnx.input_shape().rank() == 2)
    return activated(spec.activation, onnx.apply("Gemm", with_parameters(onnx), {{"transB", 1}}), onnx);
  // Of each step.
  std::string product = onnx.apply("MatMul", {onnx.input(), onnx.transposed(onnx.parameter(), {1, 0})});
  if (spec.bias) product = onnx.apply("Add", {product, onnx.parameter(1)});
  return activated(spec.activation, product, onnx);
}

std::string translate(const ConvolutionSpec& spec, OnnxWriter& onnx) {
  const Shape& shape = onnx.input_shape();
  const HeightWidth begin = spec.padding, end{begin.height + spec.trailing.height, begin.width + spec.trailing.width};
  return channels_first(onnx, [&](const std::string& given) {
    std::vector<std::string> inputs = with_parameters(onnx);
    inputs.front() = given;
    std::string value = onnx.apply("Conv", std::move(inputs),
                                   {{"kernel_shape", directions(spec.kernel, shape)},
                                    {"strides", directions(spec.stride, shape)},
                                    {"pads", pads(begin, end, shape)},
                                    {"dilations", directions(spec.dilation, shape)},
                                    {"group", spec.groups}});
    value = activated(spec.activation, value, onnx);
    return spec.pool ? pooled(*spec.pool, convolution_output(spec, shape), value, onnx) : value;
  });
}

/// softmax(Q · Kᵀ / √d) · V; scores of steps that are not read are the least there is, whose softmax is 0.
std::string translate(const AttentionSpec& spec, OnnxWriter& onnx) {
  const std::int64_t steps = onnx.output_shape()[1], width = onnx.output_shape()[2], depth = width / spec.heads;
  const std::string heads = onnx.constant({0, steps, spec.heads, depth});
  const auto part = [&](std::int64_t i, std::vector<std::int64_t> axes) {
    const std::string slice = onnx.apply("Slice", {onnx.input(), onnx.constant({i * width}),
                                                   onnx.constant({(i + 1) * width}), onnx.constant({std::int64_t{2}})});
    return onnx.transposed(onnx.apply("Reshape", {slice, heads}), std::move(axes));
  };
  const std::string query = part(0, {0, 2, 1, 3}), key = part(1, {0, 2, 3, 1}), value = part(2, {0, 2, 1, 3});
  std::string scores = onnx.apply("Mul", {onnx.apply("MatMul", {query, key}),
                                          onnx.scalar(static_cast<float>(1 / std::sqrt(static_cast<double>(depth))))});
  const auto keep = [&](const std::string& read) {
    scores = onnx.apply("Where", {read, scores, onnx.scalar(std::numeric_limits<float>::lowest())});
  };
  const auto keys = [&] { return onnx.constant(counted_up(steps), {1, steps}); };
  if (spec.causal) keep(onnx.apply("LessOrEqual", {keys(), onnx.constant(counted_up(steps), {steps, 1})}));
  std::string real;
  if (onnx.inputs() > 1) {
    real = onnx.apply("Less", {keys(), onnx.apply("Unsqueeze", {onnx.input(1), onnx.constant({1, 2, 3})})});
    keep(real);
  }
  scores = onnx.apply("Softmax", {scores}, {{"axis", -1}});
  if (!real.empty()) scores = onnx.apply("Where", {real, scores, onnx.scalar(0)});  // where no step is
  const std::string means = onnx.transposed(onnx.apply("MatMul", {scores, value}), {0, 2, 1, 3});
  return onnx.apply("Reshape", {means, onnx.constant({0, steps, width})});
}

}  // namespace ronda::onnx_operations
