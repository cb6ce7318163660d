#pragma once
#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <ronda/layers/graph.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/onnx/onnx_writer.hpp>

namespace ronda {

/// Writes the protocol buffer that an ONNX file is, after ONNX's own checker and inference of shapes have seen it.
/// In proto/, or, in a build without ONNX, no_proto.cpp, where it throws InputError.
/// @param version  Ronda's
void write_proto(const std::filesystem::path& file, const OnnxModel& model, const std::string& version);

/// A graph on its way to ONNX: walks its operations, and gives names.
class OnnxExport {
 public:
  /// @param tensors  parameters and what layers keep, as in files; they outlive this object. Throws InputError where
  ///                 they are not those of the graph.
  /// @param source   where they are from, for messages
  OnnxExport(const Graph& graph, std::span<const NamedTensor> tensors, const std::filesystem::path& source);

  /// All of it; once. Throws InputError that names an operation without a translation.
  OnnxModel run();

  // ---- for writers of operations ------------------------------------------------------------------------------------

  [[nodiscard]] const Graph& graph() const noexcept { return graph_; }
  [[nodiscard]] OnnxModel& model() noexcept { return model_; }
  [[nodiscard]] const std::string& name(std::size_t value) const { return names_.at(value); }
  /// Puts it into the file, where it is not yet.
  std::string parameter(ParameterId id) { return tensor(graph_.parameters[index_of(id)].name); }
  std::string state(StateId id);
  /// `wish`, or, where that is another value's, with a number behind it.
  std::string new_name(const std::string& wish);

 private:
  const NamedTensor& expect(const std::string& name, const Shape& shape) const;
  std::string tensor(const std::string& name);
  void name_output();

  const Graph& graph_;
  std::map<std::string, const NamedTensor*, std::less<>> tensors_;
  std::filesystem::path source_;
  OnnxModel model_;
  std::map<std::size_t, std::string> names_;  ///< of the graph's values
  std::set<std::string, std::less<>> taken_, written_;
};

/// What a value is in ONNX: images are (C, H, W).
[[nodiscard]] OnnxValue described(const std::string& name, const Value& value);

/// Whether a value is an image, whose axes have another order in ONNX.
[[nodiscard]] inline bool is_image(const Shape& shape) noexcept { return shape.rank() == 4; }

}  // namespace ronda
