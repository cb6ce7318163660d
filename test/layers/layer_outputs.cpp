// What small models compute from given numbers, for scripts/check_pytorch.py to compare with:
//   layer_outputs FOLDER
// Reads NAME.safetensors for each model NAME: its parameters, `input` and `output_gradient`. Writes NAME.found:
// `output`, `input.gradient`, and of each parameter `conv1.weight.gradient`.
#include "../../apps/tool.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/layers/operation.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/layers/program.hpp>
#include <ronda/runtime/io/safetensors.hpp>

using namespace ronda;

namespace {

struct SmallModel {
  std::string name;
  Sequential model;
};

std::vector<SmallModel> small_models() {
  return {{"conv1d", Sequential(Conv1d(8, 4, {.stride = 2, .padding = 3, .groups = 2}), ReLU(),
                                Conv1d(12, 4, {.padding = same_padding, .dilation = 2, .bias = false}))},
          {"conv1d_pooled", Sequential(Conv1d(32, 3), ReLU(), MaxPool1d(2), Conv1d(16, 5, {.padding = same_padding}),
                                       AveragePool1d(3, 2, 1), Flatten(), Dense(7))},
          {"conv1d_means", Sequential(Conv1d(16, 5, {.groups = 2}), GlobalAveragePool(), Flatten(), Dense(3))}};
}

class Given {
 public:
  explicit Given(const std::filesystem::path& file) : tensors_(read_safetensors(file).tensors) {}
  [[nodiscard]] const NamedTensor& operator[](std::string_view name) const {
    const auto found = std::ranges::find(tensors_, name, &NamedTensor::name);
    if (found == tensors_.end()) throw InputError("there is no tensor " + std::string(name));
    return *found;
  }

 private:
  std::vector<NamedTensor> tensors_;
};

NamedTensor named(const std::string& name, const Tensor& tensor) {
  NamedTensor plain{name, tensor.shape(), std::vector<float>(static_cast<std::size_t>(tensor.desc().count()))};
  reorder(tensor, Tensor({tensor.shape(), DType::float32, {}}, plain.values.data()));
  return plain;
}

std::vector<NamedTensor> compute(const Layer& model, const Given& given) {
  NamedTensor input = given["input"], dy = given["output_gradient"];
  const auto primitives = make_onednn_primitives(1);
  FirstPicker picker;
  HostProgram host(build_graph(model, input.shape), *primitives, picker, {.input_gradient = true});
  for (const Parameter& parameter : host.parameters()) {
    const NamedTensor& values = given[parameter.name];
    if (values.shape != parameter.value.shape())
      throw InputError(parameter.name + " is " + values.shape.text() + ", not " + parameter.value.shape().text());
    from_file(parameter, values.values, parameter.value);
  }
  CpuStream stream(1);
  StepControl control;
  const Pass pass{.stream = stream, .weights = nullptr, .control = &control, .on_ready = {}};
  const Tensor x({input.shape, DType::float32, {}}, input.values.data());
  std::vector<NamedTensor> found{named("output", host.program().forward({&x, 1}, pass))};
  reorder(Tensor({dy.shape, DType::float32, {}}, dy.values.data()), host.program().output_gradient());
  host.program().backward(pass);
  found.push_back(named("input.gradient", host.program().input_gradient(0)));
  for (const Parameter& parameter : host.parameters())
    found.push_back({parameter.name + ".gradient", parameter.value.shape(), to_file(parameter, parameter.gradient)});
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_alone([&] {
    if (argc != 2) {
      std::cerr << "usage: layer_outputs FOLDER\n";
      return 2;
    }
    const std::filesystem::path folder = argv[1];
    for (const auto& [name, model] : small_models())
      write_safetensors(folder / (name + ".found"), compute(model, Given(folder / (name + ".safetensors"))));
    return 0;
  });
}
