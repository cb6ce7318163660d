#pragma once
#include <memory>
#include <vector>

#include <ronda/layers/layers.hpp>
#include <ronda/layers/planner.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda::test {

/// One layer (or composite) with all its memory, outside any strategy: plan, bind, and then forward and backward by
/// hand.
class PlainModel {
 public:
  PlainModel(Layer& layer, const TensorDesc& input, Primitives& primitives, Picker& picker, std::uint64_t seed = 7,
             bool input_gradient = true)
      : layer_(layer), planner_(primitives, picker, Mode::training) {
    planner_.set_input_gradient_needed(input_gradient);
    output_ = planner_.plan(layer, input);
    const BufferPlan buffers = place_buffers(planner_.buffers());
    activations_ = Buffer::host(buffers.bytes);
    for (const auto& request : planner_.parameters()) {
      memory_.push_back(Buffer::host(request.desc.bytes()));
      memory_.push_back(Buffer::host(request.desc.bytes()));
      Parameter parameter{.id = ParameterId{static_cast<std::uint32_t>(parameters_.size())},
                          .name = request.name,
                          .value = Tensor(request.desc, memory_[memory_.size() - 2].data()),
                          .gradient = Tensor(request.desc, memory_.back().data()),
                          .master = std::nullopt,
                          .flattened = request.flattened};
      // Biases are not left at zero: a forgotten one would not be seen.
      initialize(parameter, Initializer::he_uniform, std::max<std::int64_t>(request.fan_in, 4), 4, seed);
      parameters_.push_back(std::move(parameter));
    }
    layer.bind(Bindings(parameters_, buffers.offsets, activations_.data()));
  }

  [[nodiscard]] const TensorDesc& output() const { return output_; }
  [[nodiscard]] std::vector<Parameter>& parameters() { return parameters_; }
  [[nodiscard]] Pass pass() { return {.stream = stream_, .weights = nullptr, .control = &control_, .on_ready = {}}; }

 private:
  Layer& layer_;
  Planner planner_;
  TensorDesc output_;
  Buffer activations_;
  std::vector<Buffer> memory_;
  std::vector<Parameter> parameters_;
  CpuStream stream_;
  StepControl control_;
};

}  // namespace ronda::test
