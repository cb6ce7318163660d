#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>
#include <ronda/layers/check_gradients.hpp>
#include <ronda/layers/program.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <vector>

namespace ronda {
namespace {

/// A layer with memory of its own, and a scalar function of its output.
class Probe {
 public:
  Probe(const Layer& layer, const Shape& input, Primitives& primitives, Picker& picker, std::uint64_t seed)
      : seed_(seed), layer_(build_graph(layer, input), primitives, picker, {.input_gradient = true}) {
    input_ = tensor(program().input_desc(0));
    coefficients_ = tensor(program().output());
    draw(input_, 1);
    draw(coefficients_, 1);
    for (const Parameter& parameter : layer_.parameters())
      draw(parameter.value, scale_of(program().parameters()[index_of(parameter.id)]));
  }

  /// Of the input, then of the parameters.
  struct Named {
    std::string name;
    std::span<float> elements;
    std::vector<float> gradient;
  };
  std::vector<Named> gradients() {
    value();
    std::ranges::copy(coefficients_.as<float>(), program().output_gradient().as<float>().begin());
    program().backward(pass());
    const auto copied = [](const Tensor& tensor) {
      return std::vector<float>(tensor.as<float>().begin(), tensor.as<float>().end());
    };
    std::vector<Named> all{{"input", input_.as<float>(), copied(program().input_gradient(0))}};
    for (const Parameter& parameter : layer_.parameters())
      all.push_back({parameter.name, parameter.value.as<float>(), copied(parameter.gradient)});
    return all;
  }

  /// The slopes to both sides of an element.
  struct Slopes {
    double up, down;
    [[nodiscard]] double mean() const { return (up + down) / 2; }
  };
  Slopes slopes(float& element, float h) {
    const double here = value();
    const float before = element;
    element = before + h;
    const double above = value();
    element = before - h;
    const double below = value();
    element = before;
    return {(above - here) / double{h}, (here - below) / double{h}};
  }

 private:
  Tensor tensor(const TensorDesc& desc) { return {desc, memory_.emplace_back(Buffer::host(desc.bytes())).data()}; }
  /// Padding stays zero.
  void draw(const Tensor& tensor, float scale) {
    std::vector<float> values(static_cast<std::size_t>(tensor.desc().count()));
    const RngKey key(seed_, Purpose::test, drawn_++);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = scale * (2 * key.uniform(i) - 1);
    reorder(Tensor({tensor.shape(), DType::float32, {}}, values.data()), tensor);
  }

  /// Outputs of a layer are about as large as its inputs, so that rounding stays small.
  static float scale_of(const ParameterRequest& request) {
    return request.fan_in > 0 ? std::sqrt(3.0F / static_cast<float>(request.fan_in)) : 1;
  }

  double value() {
    layer_.reset_states();
    const auto outputs = program().forward({&input_, 1}, pass()).as<float>(), weights = coefficients_.as<float>();
    double sum = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) sum += double{weights[i]} * outputs[i];
    return sum;
  }
  Pass pass() { return {.stream = stream_, .control = &control_, .on_ready = {}}; }

  [[nodiscard]] Program& program() { return layer_.program(); }

  std::uint64_t seed_, drawn_ = 0;
  HostProgram layer_;
  std::deque<Buffer> memory_;
  Tensor input_, coefficients_;
  CpuStream stream_;
  StepControl control_;
};

void compare(Probe& probe, const Probe::Named& tensor, const GradientCheckOptions& options, GradientReport& report) {
  const std::size_t step = 1 + tensor.elements.size() / options.elements;
  for (std::size_t i = 0; i < tensor.elements.size(); i += step) {
    ++report.tried;
    const Probe::Slopes narrow = probe.slopes(tensor.elements[i], options.step / 4);
    const double wide = probe.slopes(tensor.elements[i], options.step).mean();
    const double allowed = options.tolerance * (1 + std::abs(wide));
    if (std::abs(wide - narrow.mean()) > allowed || std::abs(narrow.up - narrow.down) > allowed) continue;
    ++report.smooth;
    const double gradient = tensor.gradient[i];
    // Of many small kinks each difference sees some, the narrow one fewer.
    if (std::abs(wide - gradient) <= allowed || std::abs(narrow.mean() - gradient) <= allowed) continue;
    if (report.wrong++ == 0)
      report.first_wrong = tensor.name + "[" + std::to_string(i) + "]: " + std::to_string(gradient) + " by backward, " +
                           std::to_string(wide) + " by differences";
  }
}

}  // namespace

GradientReport compare_gradients(const Layer& layer, const Shape& input, const GradientCheckOptions& options) {
  const auto loops = make_reference_primitives();
  FirstPicker first;
  Probe probe(layer, input, options.primitives != nullptr ? *options.primitives : *loops,
              options.picker != nullptr ? *options.picker : first, options.seed);
  GradientReport report;
  for (const Probe::Named& tensor : probe.gradients()) compare(probe, tensor, options, report);
  return report;
}

void check_gradients(const Layer& layer, const Shape& input, const GradientCheckOptions& options) {
  const GradientReport report = compare_gradients(layer, input, options);
  const std::string what = "gradients of a " + std::string(layer.kind()) + " of " + input.text();
  if (report.wrong > 0)
    throw Error(what + " are wrong at " + std::to_string(report.wrong) + " of " + std::to_string(report.smooth) +
                " elements, first " + report.first_wrong);
  if (report.smooth * 3 < report.tried)
    throw Error(what + " were compared at " + std::to_string(report.smooth) + " of " + std::to_string(report.tried) +
                " elements only: the others lie near kinks; take a smaller step");
}

}  // namespace ronda
