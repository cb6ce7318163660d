#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include <ronda/layers/graph.hpp>
#include <ronda/runtime/io/safetensors.hpp>

namespace ronda {

struct OnnxOptions {
  std::string name = "model";                           ///< name of the graph
  std::map<std::string, std::string> metadata = {};     ///< any texts to store in the file
  std::map<std::string, std::string> value_texts = {};  ///< descriptions of inputs and `output`, for users
};

/// Writes a model in evaluation mode as an ONNX file of opset 17. Inputs have the names of the graph's fields, the
/// output is `output`, and the first axis of each, `N`, is any number of samples, independent of the graph. Images,
/// float32 (N, H, W, C), become (N, C, H, W), as usual in ONNX and PyTorch. Parameters keep names and shapes. ONNX's
/// library checks the file before it is written, completely or not at all.
///
///     const Safetensors file = read_safetensors("mlp.safetensors");
///     write_onnx("mlp.onnx", build_graph(model, {&field, 1}, 1), file.tensors, "mlp.safetensors");
///
/// @param tensors  parameters and states, as in files of `--save`
/// @param source   origin of the tensors, for messages
///
/// Throws InputError, before writing anything, if the tensors do not match the graph, if an operation has no
/// translation (see OnnxTranslation), if the model has 2 GiB or more, the limit of ONNX files, and in a build without
/// ONNX; ResourceError if the file cannot be written.
void write_onnx(const std::filesystem::path& file, const Graph& graph, std::span<const NamedTensor> tensors,
                const std::filesystem::path& source, const OnnxOptions& options = {});

/// The version of ONNX's library; empty in a build without it.
[[nodiscard]] std::string onnx_library();

}  // namespace ronda
