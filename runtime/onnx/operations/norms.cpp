// Normalisations and poolings.
#include <ronda/runtime/onnx/operations/onnx_export.hpp>
#include <ronda/runtime/onnx/operations/translate.hpp>

#include <functional>
#include <numeric>

namespace ronda::onnx_operations {
namespace {

using Axes = std::vector<std::int64_t>;

std::vector<float> ones(const Shape& shape) { return std::vector<float>(static_cast<std::size_t>(shape.count()), 1); }

/// What `body` makes of `value` with its axes in another order, in the order of before.
std::string in_order(const Axes& axes, const std::string& value, OnnxWriter& onnx,
                     const std::function<std::string(const std::string&)>& body) {
  Axes back(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) back[static_cast<std::size_t>(axes[i])] = static_cast<std::int64_t>(i);
  return onnx.transposed(body(onnx.transposed(value, axes)), back);
}

/// The last axis behind the samples.
Axes channels_second(int rank) {
  Axes axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), -1);
  axes[0] = 0;
  axes[1] = rank - 1;
  return axes;
}

}  // namespace

std::string translate(const LayerNormSpec& spec, OnnxWriter& onnx) {
  const Shape shape = normalized_shape(spec, onnx.input_shape());
  const std::string weight = spec.affine ? onnx.parameter() : onnx.constant(ones(shape), shape);
  const auto normalized = [&](const std::string& value) {
    std::vector<std::string> inputs{value, weight};
    if (onnx.parameters() > 1) inputs.push_back(onnx.parameter(1));
    return onnx.apply("LayerNormalization", std::move(inputs),
                      {{"axis", std::int64_t{-spec.axes}}, {"epsilon", spec.epsilon}});
  };
  const bool of_pixels = is_image(onnx.input_shape()) && spec.axes == 1;
  return of_pixels ? in_order({0, 2, 3, 1}, onnx.input(), onnx, normalized) : normalized(onnx.input());
}

std::string translate(const BatchNormSpec& spec, OnnxWriter& onnx) {
  const Shape& in = onnx.input_shape();
  const Shape channels{in[in.rank() - 1]};
  const std::string weight = spec.affine ? onnx.parameter(0) : onnx.constant(ones(channels), channels),
                    bias = spec.affine
                               ? onnx.parameter(1)
                               : onnx.constant(std::vector<float>(static_cast<std::size_t>(channels[0])), channels);
  const auto normalized = [&](const std::string& value) {
    return onnx.apply("BatchNormalization", {value, weight, bias, onnx.state(0), onnx.state(1)},
                      {{"epsilon", spec.epsilon}});
  };
  const bool in_place = is_image(in) || in.rank() == 2;
  const std::string value =
      in_place ? normalized(onnx.input()) : in_order(channels_second(in.rank()), onnx.input(), onnx, normalized);
  return activated(spec.activation, value, onnx);
}

std::string pooled(const PoolSpec& spec, const Shape& shape, const std::string& value, OnnxWriter& onnx) {
  const bool largest = spec.kind == PoolKind::maximum;
  const PoolSpec whole = global_average(shape);
  if (!largest && spec.padding == 0 && spec.kernel == whole.kernel) return onnx.apply("GlobalAveragePool", {value});
  return onnx.apply(largest ? "MaxPool" : "AveragePool", {value},
                    {{"kernel_shape", directions(spec.kernel, shape)},
                     {"strides", directions(spec.stride, shape)},
                     {"pads", pads(spec.padding, spec.padding, shape)}});
}

std::string translate(const PoolSpec& spec, OnnxWriter& onnx) {
  return channels_first(onnx, [&](const std::string& value) { return pooled(spec, onnx.input_shape(), value, onnx); });
}

}  // namespace ronda::onnx_operations
