// What reads rows of a table.
#include <ronda/runtime/onnx/operations/onnx_export.hpp>
#include <ronda/runtime/onnx/operations/translate.hpp>

namespace ronda::onnx_operations {
namespace {

/// Which tokens are padding, bool (N, …).
std::string is_padding(const EmbeddingSpec& spec, OnnxWriter& onnx) {
  return onnx.apply("Equal", {onnx.input(), onnx.constant(std::vector{static_cast<std::int32_t>(spec.padding)}, {})});
}

/// The tokens' rows; zeros for those that are left out. ONNX counts a token of -1 from the table's end, which is a row.
std::string rows(const std::string& left_out, OnnxWriter& onnx) {
  const std::string found = onnx.apply("Gather", {onnx.parameter(), onnx.input()}, {{"axis", 0}}),
                    of_rows = onnx.apply("Unsqueeze", {left_out, onnx.constant({std::int64_t{-1}})});
  return onnx.apply("Where", {of_rows, onnx.scalar(0), found});
}

std::string bag(const EmbeddingSpec& spec, OnnxWriter& onnx) {
  const std::string padding = is_padding(spec, onnx), steps = onnx.constant({std::int64_t{1}});
  std::string sum = onnx.apply("ReduceSum", {rows(padding, onnx), steps}, {{"keepdims", 0}});
  if (spec.bag == BagMode::sum) return sum;
  constexpr std::int64_t to_float = 1;  // TensorProto::FLOAT
  const std::string counted = onnx.apply("Cast", {onnx.apply("Not", {padding})}, {{"to", to_float}}),
                    count = onnx.apply("ReduceSum", {counted, steps}, {{"keepdims", 1}});
  return onnx.apply("Div", {sum, onnx.apply("Max", {count, onnx.scalar(1)})});
}

}  // namespace

std::string translate(const EmbeddingSpec& spec, OnnxWriter& onnx) {
  if (spec.bag) return bag(spec, onnx);
  const std::string found = spec.padding < 0 ? rows(is_padding(spec, onnx), onnx)
                                             : onnx.apply("Gather", {onnx.parameter(), onnx.input()}, {{"axis", 0}});
  return is_image(onnx.output_shape()) ? onnx.transposed(found, {0, 3, 1, 2}) : found;
}

std::string translate(const PositionSpec& spec, OnnxWriter& onnx) {
  const std::int64_t steps = onnx.input_shape()[1];
  const std::string first = steps == spec.rows
                                ? onnx.parameter()
                                : onnx.apply("Slice", {onnx.parameter(), onnx.constant({std::int64_t{0}}),
                                                       onnx.constant({steps}), onnx.constant({std::int64_t{0}})});
  return onnx.apply("Add", {onnx.input(), first});
}

}  // namespace ronda::onnx_operations
