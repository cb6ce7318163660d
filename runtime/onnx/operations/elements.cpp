// What has no parameters, and treats each number alike.
#include <ronda/core/error.hpp>
#include <ronda/runtime/onnx/operations/onnx_export.hpp>
#include <ronda/runtime/onnx/operations/translate.hpp>

#include <array>

namespace ronda::onnx_operations {
namespace {

std::vector<std::string> all_inputs(const OnnxWriter& onnx) {
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < onnx.inputs(); ++i) inputs.push_back(onnx.input(i));
  return inputs;
}

/// x · (1 + erf(x / √2)) / 2, in the order in which PyTorch writes it: runtimes know it by that, and compute it at
/// once.
std::string gelu(OnnxWriter& onnx) {
  const std::string error = onnx.apply("Erf", {onnx.apply("Div", {onnx.input(), onnx.scalar(1.41421356F)})}),
                    above = onnx.apply("Add", {error, onnx.scalar(1)});
  return onnx.apply("Mul", {onnx.apply("Mul", {onnx.input(), above}), onnx.scalar(0.5F)});
}

}  // namespace

std::string activated(Activation activation, const std::string& value, OnnxWriter& onnx) {
  return activation == Activation::relu ? onnx.apply("Relu", {value}) : value;
}

std::string translate(const ElementwiseSpec& spec, OnnxWriter& onnx) {
  switch (spec.function) {
    case ElementwiseFunction::relu: return onnx.apply("Relu", {onnx.input()});
    case ElementwiseFunction::gelu: return gelu(onnx);
    case ElementwiseFunction::silu: return onnx.apply("Mul", {onnx.input(), onnx.apply("Sigmoid", {onnx.input()})});
    case ElementwiseFunction::tanh: return onnx.apply("Tanh", {onnx.input()});
    case ElementwiseFunction::mish:
      return onnx.apply("Mul", {onnx.input(), onnx.apply("Tanh", {onnx.apply("Softplus", {onnx.input()})})});
    case ElementwiseFunction::sigmoid: return onnx.apply("Sigmoid", {onnx.input()});
  }
  throw LogicError("a function of each element has no translation to ONNX");
}

std::string translate(const AddSpec& spec, OnnxWriter& onnx) {
  return activated(spec.activation, onnx.apply(onnx.inputs() == 2 ? "Add" : "Sum", all_inputs(onnx)), onnx);
}

std::string translate(const ConcatSpec& spec, OnnxWriter& onnx) {
  constexpr std::array<std::int64_t, 4> of_image{0, 2, 3, 1};  // where height, width and channels are
  const std::int64_t axis =
      is_image(onnx.input_shape()) ? of_image[static_cast<std::size_t>(spec.axis)] : std::int64_t{spec.axis};
  return onnx.apply("Concat", all_inputs(onnx), {{"axis", axis}});
}

std::string translate(const FlattenSpec&, OnnxWriter& onnx) {
  return onnx.apply("Flatten", {onnx.input()}, {{"axis", 1}});
}

std::string translate(const DropoutSpec&, OnnxWriter& onnx) { return onnx.input(); }

}  // namespace ronda::onnx_operations
