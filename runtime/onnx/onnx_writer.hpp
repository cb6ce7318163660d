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

/// Writes the ONNX operators for one operation of a graph. Values are known by names.
///
/// A value has the shape that it has in the graph, but for images, float32 (N, H, W, C): these are (N, C, H, W), as
/// ONNX's operators take them. Parameters are as in files.
class OnnxWriter {
 public:
  OnnxWriter(OnnxExport& all, const GraphNode& node) : all_(all), node_(node) {}

  // ---- the operation ------------------------------------------------------------------------------------------------

  [[nodiscard]] const std::string& input(std::size_t i = 0) const;
  [[nodiscard]] std::size_t inputs() const noexcept;
  [[nodiscard]] const Shape& input_shape(std::size_t i = 0) const;  ///< in the graph: images are (N, H, W, C)
  [[nodiscard]] const Shape& output_shape() const;                  ///< likewise
  /// In the order in which the layer asked for them: weight, bias.
  [[nodiscard]] std::string parameter(std::size_t i = 0) const;
  [[nodiscard]] std::size_t parameters() const noexcept;
  /// What the operation keeps and does not train, a running mean. Throws LogicError for whole numbers.
  [[nodiscard]] std::string state(std::size_t i = 0) const;

  // ---- what becomes of it -------------------------------------------------------------------------------------------

  /// An operator of opset 17 that gives one value; returns the value's name. An input with an empty name is left out.
  std::string apply(std::string_view kind, std::vector<std::string> inputs, std::vector<OnnxAttribute> attributes = {});
  /// Numbers that are no parameter.
  std::string constant(std::vector<float> values, const Shape& shape);
  std::string constant(std::vector<std::int32_t> values, const Shape& shape);
  std::string constant(std::vector<std::int64_t> values);  ///< a list, as of axes and shapes
  std::string scalar(float value) { return constant(std::vector<float>{value}, {}); }
  /// Axes in another order.
  std::string transposed(const std::string& value, std::vector<std::int64_t> axes) {
    return apply("Transpose", {value}, {{"perm", std::move(axes)}});
  }

 private:
  template <class Number>
  std::string numbers(std::vector<Number> values, const Shape& shape);

  OnnxExport& all_;
  const GraphNode& node_;
};

/// A CustomOperation that derives from this one too can be exported.
///
///     class Loops final : public CustomOperation, public OnnxTranslation {
///       std::string to_onnx(OnnxWriter& onnx) const override {
///         return onnx.apply("PRelu", {onnx.input(), onnx.parameter()});
///       }
class OnnxTranslation {
 public:
  /// Writes the operation, as it is in evaluation, and returns the name of the value that it gives.
  virtual std::string to_onnx(OnnxWriter& onnx) const = 0;

 protected:
  ~OnnxTranslation() = default;
};

}  // namespace ronda
