#include <ronda/core/error.hpp>
#include <ronda/layers/custom_operation.hpp>
#include <ronda/runtime/onnx/operations/translate.hpp>

#include <memory>
#include <variant>

namespace ronda {
namespace {

InputError without_translation(const GraphNode& node, const std::string& remedy) {
  return InputError("the model's operation " + node.name + ", of the kind '" + kind_of(node.operation) +
                    "', has no translation to ONNX; " + remedy);
}

std::string translate_own(const GraphNode& node, const CustomOperation& own, OnnxWriter& onnx) {
  const auto* translation = dynamic_cast<const OnnxTranslation*>(&own);
  if (translation == nullptr)
    throw without_translation(node, "an operation of your own gets one by deriving from OnnxTranslation too");
  return translation->to_onnx(onnx);
}

}  // namespace

std::string translate(const GraphNode& node, OnnxWriter& onnx) {
  return std::visit(
      [&]<class Spec>(const Spec& spec) -> std::string {
        if constexpr (std::is_same_v<Spec, std::shared_ptr<const CustomOperation>>)
          return translate_own(node, *spec, onnx);
        else if constexpr (requires { onnx_operations::translate(spec, onnx); })
          return onnx_operations::translate(spec, onnx);
        else
          throw without_translation(node, "runtime/onnx/operations has those that there are");
      },
      node.operation);
}

}  // namespace ronda
