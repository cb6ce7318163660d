// Layers that have a weight and a bias.
#include <ronda/layers/conv2d.hpp>
#include <ronda/layers/dense.hpp>

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

}  // namespace

Value Dense::build(Value x, GraphBuilder& builder) const {
  static_cast<void>(output_shape(spec_, {&x.shape, 1}));
  const std::int64_t inputs = x.shape[1];
  return build_trained(*this, spec_, x, {spec_.outputs, inputs}, inputs, spec_.outputs, builder);
}

Value Conv2d::build(Value x, GraphBuilder& builder) const {
  static_cast<void>(output_shape(spec_, {&x.shape, 1}));
  const std::int64_t channels = x.shape[3], window = spec_.kernel * spec_.kernel;
  return build_trained(*this, spec_, x, {spec_.outputs, channels, spec_.kernel, spec_.kernel}, channels * window,
                       spec_.outputs * window, builder);
}

}  // namespace ronda
