#include <ronda/core/error.hpp>
#include <ronda/runtime/onnx/onnx_writer.hpp>
#include <ronda/runtime/onnx/operations/onnx_export.hpp>

#include <utility>

namespace ronda {

const std::string& OnnxWriter::input(std::size_t i) const { return all_.name(node_.inputs.at(i)); }
std::size_t OnnxWriter::inputs() const noexcept { return node_.inputs.size(); }
const Shape& OnnxWriter::input_shape(std::size_t i) const { return all_.graph().values[node_.inputs.at(i)].shape; }
const Shape& OnnxWriter::output_shape() const { return all_.graph().values[node_.output].shape; }
std::string OnnxWriter::parameter(std::size_t i) const { return all_.parameter(node_.parameters.at(i)); }
std::size_t OnnxWriter::parameters() const noexcept { return node_.parameters.size(); }
std::string OnnxWriter::state(std::size_t i) const { return all_.state(node_.states.at(i)); }

std::string OnnxWriter::apply(std::string_view kind, std::vector<std::string> inputs,
                              std::vector<OnnxAttribute> attributes) {
  std::string output = all_.new_name(node_.name + "." + std::string(kind));
  all_.model().nodes.push_back({std::string(kind), std::move(inputs), output, std::move(attributes)});
  return output;
}

template <class Number>
std::string OnnxWriter::numbers(std::vector<Number> values, const Shape& shape) {
  if (static_cast<std::int64_t>(values.size()) != shape.count())
    throw LogicError("a constant of " + shape.text() + " is given " + std::to_string(values.size()) + " numbers");
  std::string name = all_.new_name(node_.name + ".constant");
  all_.model().tensors.push_back({name, shape, std::move(values)});
  return name;
}

std::string OnnxWriter::constant(std::vector<float> values, const Shape& shape) {
  return numbers(std::move(values), shape);
}
std::string OnnxWriter::constant(std::vector<std::int32_t> values, const Shape& shape) {
  return numbers(std::move(values), shape);
}
std::string OnnxWriter::constant(std::vector<std::int64_t> values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return numbers(std::move(values), shape);
}

}  // namespace ronda
