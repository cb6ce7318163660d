#pragma once
#include <algorithm>
#include <span>
#include <utility>

#include <ronda/core/buffer.hpp>
#include <ronda/core/number.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/layers/program.hpp>

namespace ronda::test {

/// One layer (or composite) with all its memory, outside any strategy: forward and backward by hand.
class PlainModel {
 public:
  PlainModel(const Layer& layer, const Shape& input, Primitives& primitives, Picker& picker, std::uint64_t seed = 7,
             bool input_gradient = true)
      : PlainModel(build_graph(layer, input), primitives, picker, seed, input_gradient) {}
  PlainModel(Graph graph, Primitives& primitives, Picker& picker, std::uint64_t seed = 7, bool input_gradient = true,
             Mode mode = Mode::training)
      : model_(std::move(graph), primitives, picker, {.mode = mode, .input_gradient = input_gradient}) {
    // Biases are not left at zero: a forgotten one would not be seen.
    for (const Parameter& parameter : parameters()) {
      const TensorDesc exact{parameter.value.shape(), DType::float32, parameter.value.desc().layout};
      const Buffer drawn = Buffer::host(exact.bytes());
      Parameter drawing = parameter;
      drawing.value = Tensor(exact, drawn.data());
      initialize(drawing, Initializer::he_uniform,
                 std::max<std::int64_t>(program().parameters()[index_of(parameter.id)].fan_in, 4), 4, seed);
      convert(drawing.value, parameter.value);
    }
  }

  [[nodiscard]] Program& program() { return model_.program(); }
  [[nodiscard]] const TensorDesc& output() const { return model_.program().output(); }
  [[nodiscard]] std::span<const Parameter> parameters() const { return model_.parameters(); }
  [[nodiscard]] std::span<const Tensor> states() const { return model_.states(); }
  [[nodiscard]] Pass pass() { return {.stream = stream_, .weights = nullptr, .control = &control_, .on_ready = {}}; }
  const Tensor& forward(const Tensor& input) { return program().forward({&input, 1}, pass()); }
  /// Returns the input's gradient.
  Tensor backward(const Tensor& output_gradient) {
    reorder(output_gradient, program().output_gradient());
    program().backward(pass());
    return program().input_gradient(0);
  }

 private:
  HostProgram model_;
  CpuStream stream_;
  StepControl control_;
};

}  // namespace ronda::test
