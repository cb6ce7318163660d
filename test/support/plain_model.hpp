#pragma once
#include <deque>
#include <utility>
#include <vector>

#include <ronda/core/buffer.hpp>
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
      : program_(std::move(graph), nullptr, primitives, picker, {.mode = mode, .input_gradient = input_gradient}) {
    for (const auto& request : program_.parameters()) {
      Parameter parameter{.id = ParameterId{static_cast<std::uint32_t>(parameters_.size())},
                          .name = request.name,
                          .value = tensor(request.desc),
                          .gradient = tensor(request.desc),
                          .master = std::nullopt,
                          .flattened = request.flattened};
      // Biases are not left at zero: a forgotten one would not be seen.
      initialize(parameter, Initializer::he_uniform, std::max<std::int64_t>(request.fan_in, 4), 4, seed);
      parameters_.push_back(std::move(parameter));
    }
    std::vector<Tensor> states;
    for (const auto& state : program_.states()) states.push_back(tensor({state.shape, state.dtype, {}}));
    program_.bind(parameters_, states, memory_.emplace_back(Buffer::host(program_.memory().bytes)).data());
  }

  [[nodiscard]] Program& program() { return program_; }
  [[nodiscard]] const TensorDesc& output() const { return program_.output(); }
  [[nodiscard]] std::vector<Parameter>& parameters() { return parameters_; }
  [[nodiscard]] Pass pass() { return {.stream = stream_, .weights = nullptr, .control = &control_, .on_ready = {}}; }
  const Tensor& forward(const Tensor& input) { return program_.forward({&input, 1}, pass()); }
  /// Returns the input's gradient.
  Tensor backward(const Tensor& output_gradient) {
    reorder(output_gradient, program_.output_gradient());
    program_.backward(pass());
    return program_.input_gradient(0);
  }

 private:
  Tensor tensor(const TensorDesc& desc) { return {desc, memory_.emplace_back(Buffer::host(desc.bytes())).data()}; }

  Program program_;
  std::deque<Buffer> memory_;
  std::vector<Parameter> parameters_;
  CpuStream stream_;
  StepControl control_;
};

}  // namespace ronda::test
