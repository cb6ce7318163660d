#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/plain_model.hpp"

namespace ronda::test {

/// A smooth scalar function of a layer's output: Σ coefficient · output.
struct Probe {
  Layer& layer;
  PlainModel model;
  Buffer input_memory, gradient_memory;
  Tensor input, output_gradient;

  Probe(Layer& l, const Shape& shape, Primitives& primitives, Picker& picker)
      : layer(l), model(l, {shape, DType::float32, {}}, primitives, picker) {
    const TensorDesc desc{shape, DType::float32, {}};
    input_memory = Buffer::host(desc.bytes());
    gradient_memory = Buffer::host(model.output().bytes());
    input = Tensor(desc, input_memory.data());
    output_gradient = Tensor(model.output(), gradient_memory.data());
    fill(input, 1, 1.0F);
    fill(output_gradient, 2, 1.0F);
  }
  static void fill(const Tensor& tensor, std::uint64_t stream, float scale) {
    const RngKey key(11, Purpose::test, stream);
    auto values = tensor.as<float>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = scale * (2 * key.uniform(i) - 1);
  }
  double value() {
    const auto out = layer.forward(input, model.pass()).as<float>();
    const auto coefficient = output_gradient.as<float>();
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += double{coefficient[i]} * out[i];
    return sum;
  }
  /// (f(x+h) − f(x−h)) / 2h of one element. With h = 2^-9 rounding in float32 costs up to 1e-3.
  double difference(float& element, float h) {
    const float before = element;
    element = before + h;
    const double up = value();
    element = before - h;
    const double down = value();
    element = before;
    return (up - down) / (2 * h);
  }
  void check(const std::string& what) {
    value();
    const Tensor& input_gradient = layer.backward(output_gradient, model.pass());
    std::vector<float> dx(input_gradient.as<float>().begin(), input_gradient.as<float>().end());
    std::vector<std::vector<float>> dw;
    for (auto& p : model.parameters()) dw.emplace_back(p.gradient.as<float>().begin(), p.gradient.as<float>().end());
    compare(what + " input", input.as<float>(), dx);
    for (std::size_t i = 0; i < dw.size(); ++i)
      compare(what + " " + model.parameters()[i].name, model.parameters()[i].value.as<float>(), dw[i]);
  }
  /// All these functions are piecewise linear: where a wide and a narrow difference disagree, a kink (ReLU, max) lies
  /// between, and the point says nothing.
  void compare(const std::string& what, std::span<float> elements, const std::vector<float>& gradient) {
    std::size_t smooth = 0, wrong = 0, tried = 0;
    for (std::size_t i = 0; i < elements.size(); i += 1 + elements.size() / 97, ++tried) {
      const double wide = difference(elements[i], 0x1p-7F), narrow = difference(elements[i], 0x1p-9F);
      if (std::abs(wide - narrow) > 4e-3 * (1 + std::abs(wide))) continue;
      ++smooth;
      wrong += std::abs(wide - gradient[i]) > 4e-3 * (1 + std::abs(gradient[i]));
    }
    INFO(what << ": " << wrong << " of " << smooth << " differ; " << tried << " tried");
    CHECK(wrong == 0);
    CHECK(smooth * 3 >= tried);
  }
};

}  // namespace ronda::test
