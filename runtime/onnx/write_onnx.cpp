#include <ronda/core/error.hpp>
#include <ronda/runtime/onnx/operations/onnx_export.hpp>
#include <ronda/runtime/onnx/write_onnx.hpp>

namespace ronda {

void write_onnx(const std::filesystem::path& file, const Graph& graph, std::span<const NamedTensor> tensors,
                const std::filesystem::path& source, const OnnxOptions& options) {
  OnnxModel model = OnnxExport(graph, tensors, source).run();
  model.name = options.name;
  model.metadata = options.metadata;
  model.metadata.emplace("ronda.version", RONDA_VERSION);
  for (auto* values : {&model.inputs, &model.outputs})
    for (OnnxValue& value : *values)
      if (const auto text = options.value_texts.find(value.name); text != options.value_texts.end())
        value.text = text->second;
  write_proto(file, model, RONDA_VERSION);
}

}  // namespace ronda
