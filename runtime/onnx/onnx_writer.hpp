#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <ronda/core/dtype.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

/// An attribute of an ONNX operator: `{"axis", 1}`. Integers are std::int64_t.
struct OnnxAttribute {
  std::string name;
  std::variant<std::int64_t, float, std::vector<std::int64_t>, std::string> value;
};

/// An operator, with the names of its input and output values.
struct OnnxNode {
  std::string kind;                 ///< `Gemm`
  std::vector<std::string> inputs;  ///< an empty name: input is omitted
  std::string output;               ///< also the node's name
  std::vector<OnnxAttribute> attributes;
};

/// A constant of the file, row-major. Values in a span are not owned.
struct OnnxTensor {
  std::string name;
  Shape shape;
  std::variant<std::span<const float>, std::vector<float>, std::vector<std::int32_t>, std::vector<std::int64_t>> values;
};

/// An input or output of a model: (N, …), with any number N of samples.
struct OnnxValue {
  std::string name;
  Shape sample;  ///< shape of a sample, without N
  DType dtype = DType::float32;
  std::string text;  ///< description for users
};

/// The content of an ONNX file, of opset 17.
struct OnnxModel {
  std::string name;
  std::vector<OnnxValue> inputs, outputs;
  std::vector<OnnxTensor> tensors;
  std::vector<OnnxNode> nodes;
  std::map<std::string, std::string> metadata;
};

struct GraphNode;
class OnnxExport;

/// Writes the ONNX operators for one operation of a graph. Values are identified by name.
///
/// Values have the same shape as in the graph, except images, float32 (N, H, W, C): these become (N, C, H, W), as
/// ONNX's operators require. Parameters have the same shape as in files.
class OnnxWriter {
 public:
  OnnxWriter(OnnxExport& all, const GraphNode& node) : all_(all), node_(node) {}

  // ---- the operation ------------------------------------------------------------------------------------------------

  [[nodiscard]] const std::string& input(std::size_t i = 0) const;
  [[nodiscard]] std::size_t inputs() const noexcept;
  [[nodiscard]] const Shape& input_shape(std::size_t i = 0) const;  ///< in the graph: images are (N, H, W, C)
  [[nodiscard]] const Shape& output_shape() const;                  ///< likewise
  /// Name of parameter i, in the order in which the layer requested them: weight, bias.
  [[nodiscard]] std::string parameter(std::size_t i = 0) const;
  [[nodiscard]] std::size_t parameters() const noexcept;
  /// Name of state i, such as a running mean. Throws LogicError for integer states.
  [[nodiscard]] std::string state(std::size_t i = 0) const;

  // ---- what becomes of it -------------------------------------------------------------------------------------------

  /// Adds an operator of opset 17 with one output; returns the output's name. An input with an empty name is omitted.
  std::string apply(std::string_view kind, std::vector<std::string> inputs, std::vector<OnnxAttribute> attributes = {});
  /// Adds a constant, and returns its name.
  std::string constant(std::vector<float> values, const Shape& shape);
  std::string constant(std::vector<std::int32_t> values, const Shape& shape);
  std::string constant(std::vector<std::int64_t> values);  ///< a list, such as axes or a shape
  std::string scalar(float value) { return constant(std::vector<float>{value}, {}); }
  /// Permutes axes.
  std::string transposed(const std::string& value, std::vector<std::int64_t> axes) {
    return apply("Transpose", {value}, {{"perm", std::move(axes)}});
  }

 private:
  template <class Number>
  std::string numbers(std::vector<Number> values, const Shape& shape);

  OnnxExport& all_;
  const GraphNode& node_;
};

/// A CustomOperation that also derives from this class can be exported.
///
///     class Loops final : public CustomOperation, public OnnxTranslation {
///       std::string to_onnx(OnnxWriter& onnx) const override {
///         return onnx.apply("PRelu", {onnx.input(), onnx.parameter()});
///       }
class OnnxTranslation {
 public:
  /// Writes the operation in evaluation mode, and returns the name of its output.
  virtual std::string to_onnx(OnnxWriter& onnx) const = 0;

 protected:
  ~OnnxTranslation() = default;
};

}  // namespace ronda
