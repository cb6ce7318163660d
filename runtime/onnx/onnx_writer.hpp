#pragma once
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/shape.hpp>
#include <ronda/runtime/onnx/onnx_model.hpp>

namespace ronda {

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
