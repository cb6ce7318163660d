#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include <ronda/layers/graph.hpp>
#include <ronda/runtime/io/safetensors.hpp>

namespace ronda {

struct OnnxOptions {
  std::string name = "model";                           ///< of the graph
  std::map<std::string, std::string> metadata = {};     ///< texts of the program's choice, kept in the file
  std::map<std::string, std::string> value_texts = {};  ///< what inputs, and `output`, are, for people
};

/// Writes a model, as it is in evaluation, as an ONNX file of opset 17: inputs have the names of the graph's fields,
/// the output is `output`, and the first axis of each, `N`, is any number of samples, whatever the graph was built for.
/// Images, float32 (N, H, W, C), are (N, C, H, W) there, as ONNX's and PyTorch's are. Parameters keep names and shapes.
/// The file is checked by ONNX's library before it is written, and is written whole or not at all.
///
///     const Safetensors file = read_safetensors("mlp.safetensors");
///     write_onnx("mlp.onnx", build_graph(model, {&field, 1}, 1), file.tensors, "mlp.safetensors");
///
/// @param tensors  parameters and what layers keep, as files of `--save` have them
/// @param source   where they are from, for messages
///
/// Throws InputError, before it writes anything, where the tensors are not the graph's, where an operation has no
/// translation (see OnnxTranslation), for a model of 2 GiB and more, which no ONNX file holds, and in a build without
/// ONNX; ResourceError where the file cannot be written.
void write_onnx(const std::filesystem::path& file, const Graph& graph, std::span<const NamedTensor> tensors,
                const std::filesystem::path& source, const OnnxOptions& options = {});

/// The version of ONNX's library; empty: this build lacks it.
[[nodiscard]] std::string onnx_library();

}  // namespace ronda
