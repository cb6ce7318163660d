// Convolutions and poolings of sequences: PyTorch's sums, and no more than those of images of one row.
#include "layers/comparison.hpp"
#include "support/gradient_probe.hpp"
#include "support/message.hpp"
#include "support/plain_model.hpp"
#include "support/sanitizer.hpp"

#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/number.hpp>
#include <ronda/layers/operation.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace ronda;
using namespace ronda::test;

namespace {

/// A Conv1d, as its arguments.
struct Windows1d {
  Shape input;  ///< (N, T, C)
  std::int64_t outputs, kernel;
  Conv1dOptions options;
  std::int64_t before, after;  ///< zeros

  [[nodiscard]] Conv1d layer() const { return Conv1d(outputs, kernel, options); }
  /// The same of images of one row.
  [[nodiscard]] Conv2d row_layer() const {
    const HeightWidth padding = options.padding == same_padding ? same_padding : HeightWidth{0, options.padding};
    return Conv2d(outputs, {1, kernel},
                  {.stride = {1, options.stride},
                   .padding = padding,
                   .dilation = {1, options.dilation},
                   .groups = options.groups,
                   .bias = options.bias});
  }
  [[nodiscard]] std::string text() const {
    return input.text() + " to " + std::to_string(outputs) + " with kernel " + std::to_string(kernel);
  }

  /// PyTorch's Conv1d, but of (N, T, C): sums over a sequence with its zeros around it.
  [[nodiscard]] std::vector<float> operator()(std::span<const float> x, std::span<const float> weight,
                                              std::span<const float> bias) const {
    const std::int64_t steps = input[1], channels = input[2], each = channels / options.groups;
    std::vector<float> y;
    for (std::int64_t n = 0; n < input[0]; ++n)
      for (std::int64_t first = -before; first + options.dilation * (kernel - 1) < steps + after;
           first += options.stride)
        for (std::int64_t o = 0; o < outputs; ++o) {
          double sum = bias.empty() ? 0 : bias[static_cast<std::size_t>(o)];
          for (std::int64_t i = 0; i < each; ++i)
            for (std::int64_t k = 0; k < kernel; ++k) {
              const std::int64_t t = first + k * options.dilation, c = o / (outputs / options.groups) * each + i;
              if (t < 0 || t >= steps) continue;
              sum += double{weight[static_cast<std::size_t>((o * each + i) * kernel + k)]} *
                     double{x[static_cast<std::size_t>((n * steps + t) * channels + c)]};
            }
          y.push_back(static_cast<float>(sum));
        }
    return y;
  }
};

std::vector<Windows1d> convolutions() {
  return {{{2, 9, 3}, 4, 7, {}, 0, 0},
          {{1, 1, 1}, 1, 1, {}, 0, 0},
          {{3, 7, 5}, 6, 3, {.padding = 2, .bias = false}, 2, 2},
          {{2, 11, 17}, 33, 4, {.stride = 3, .padding = 1}, 1, 1},
          {{1, 13, 16}, 32, 3, {.stride = 2, .padding = 4, .dilation = 3}, 4, 4},
          {{2, 10, 6}, 4, 3, {.groups = 2}, 0, 0},
          {{2, 8, 5}, 10, 5, {.padding = 2, .groups = 5}, 2, 2},
          {{2, 6, 3}, 2, 4, {.padding = same_padding}, 1, 2},
          {{1, 5, 4}, 8, 4, {.padding = same_padding, .dilation = 3, .groups = 4}, 4, 5},
          {{4, 40, 32}, 48, 5, {.padding = same_padding}, 2, 2}};
}

/// A model's numbers for the same parameters and inputs.
struct Computed {
  std::vector<float> output, input_gradient;
  std::vector<std::vector<float>> gradients, values;  ///< of the parameters, as in files
  std::vector<std::string> picks;
  std::size_t most = 0;  ///< candidates of a question
};

std::vector<float> in_float32(const Tensor& tensor) {
  std::vector<float> numbers(static_cast<std::size_t>(tensor.desc().count()));
  const Buffer plain = Buffer::host(std::max<std::size_t>(1, numbers.size() * size_of(tensor.dtype())));
  const Tensor rows({tensor.shape(), tensor.dtype(), {}}, plain.data());
  reorder(tensor, rows);
  convert(rows, Tensor({tensor.shape(), DType::float32, {}}, numbers.data()));
  return numbers;
}

std::vector<float> in_file(const Parameter& parameter, const Tensor& stored) {
  const TensorDesc wide{stored.shape(), DType::float32, stored.desc().layout};
  const Buffer numbers = Buffer::host(wide.bytes());
  const Tensor in_full(wide, numbers.data());
  convert(stored, in_full);
  return to_file(parameter, in_full);
}

Computed compute(const Layer& layer, const Shape& input, Primitives& primitives, std::size_t wanted = 0) {
  ForcingPicker picker(wanted);
  PlainModel model(layer, input, primitives, picker);
  std::vector<float> x = random_numbers(input.count(), 1, 1);
  Computed all;
  all.output = in_float32(model.forward(Tensor({input, DType::float32, {}}, x.data())));
  const TensorDesc given = model.output();
  std::vector<float> dy = random_numbers(given.count(), 2, 1);
  const Buffer rounded = Buffer::host(given.bytes());
  convert(Tensor({given.shape, DType::float32, {}}, dy.data()), Tensor(given, rounded.data()));
  all.input_gradient = in_float32(model.backward(Tensor(given, rounded.data())));
  for (const Parameter& parameter : model.parameters()) {
    all.gradients.push_back(in_file(parameter, parameter.gradient));
    all.values.push_back(in_file(parameter, parameter.value));
  }
  for (const OperationCosts& costs : model.program().costs()) all.picks.push_back(costs.name + " " + costs.picks);
  all.most = picker.most();
  return all;
}

/// Every bit, for each candidate of each choice, and by the same steps.
void check_as_of_rows(const std::string& what, const Layer& sequences, const Layer& images, const Shape& input,
                      Primitives& primitives) {
  const Shape image{input[0], 1, input[1], input[2]};
  std::size_t candidates = 1;
  for (std::size_t wanted = 0; wanted < candidates; ++wanted) {
    const Computed found = compute(sequences, input, primitives, wanted),
                   expected = compute(images, image, primitives, wanted);
    candidates = std::max(candidates, expected.most);
    INFO(what << ", candidate " << wanted << ", " << primitives.name());
    CHECK(found.picks == expected.picks);
    CHECK(found.output == expected.output);
    CHECK(found.input_gradient == expected.input_gradient);
    CHECK(found.gradients == expected.gradients);
    CHECK(found.values == expected.values);
  }
}

}  // namespace

TEST_CASE("convolutions of sequences give PyTorch's sums, and have its parameters") {
  const auto reference = make_reference_primitives(), library = make_onednn_primitives(1);
  for (const Windows1d& c : convolutions())
    for (Primitives* primitives : {reference.get(), library.get()}) {
      INFO(c.text());
      FirstPicker picker;
      PlainModel model(c.layer(), c.input, *primitives, picker);
      const auto& parameters = model.parameters();
      REQUIRE(parameters.size() == (c.options.bias ? 2 : 1));
      CHECK(parameters[0].name == "conv1.weight");
      CHECK(parameters[0].value.shape() == Shape{c.outputs, c.input[2] / c.options.groups, c.kernel});
      std::vector<float> x = random_numbers(c.input.count(), 1, 1);
      const auto found = model.forward(Tensor({c.input, DType::float32, {}}, x.data())).as<float>();
      CHECK(model.output().shape.rank() == 3);
      const auto numbers = [&](std::size_t i) { return to_file(parameters[i], parameters[i].value); };
      check_close(c.text(), {found.begin(), found.end()},
                  c(x, numbers(0), c.options.bias ? numbers(1) : std::vector<float>()), 1e-6F);
    }
}

TEST_CASE("gradients of convolutions and poolings of sequences equal finite differences") {
  const auto library = make_onednn_primitives(1);
  GradientCheckOptions alone{.elements = sanitized ? std::size_t{6} : std::size_t{24}}, in_library = alone;
  in_library.primitives = library.get();
  const auto check = [&](const std::string& what, const Layer& layer, const Shape& input) {
    check_against_differences(what, layer, input, alone);
    check_against_differences(what + " in oneDNN", layer, input, in_library);
  };
  for (const Windows1d& c : convolutions()) {
    check(c.text(), c.layer(), c.input);
    check(c.text() + " with relu", Sequential(c.layer(), ReLU()), c.input);
  }
  const Shape input{2, 13, 3};
  check("pooled", Sequential(Conv1d(16, 3), ReLU(), MaxPool1d(2)), input);
  check("averaged", Sequential(Conv1d(5, 3), AveragePool1d(3, 2, 1)), input);
  check("poolings alone", Sequential(MaxPool1d(3, 1, 1), AveragePool1d(2)), input);
  check("mean of all steps", Sequential(Conv1d(16, 3), GlobalAveragePool(), Flatten(), Dense(3)), input);
}

TEST_CASE("layers behind a convolution of sequences read what it gives, in whatever layout") {
  const auto library = make_onednn_primitives(1);
  const Conv1d twice(32, 3, {.padding = 1}), depthwise(32, 4, {.padding = same_padding, .groups = 32});
  const std::vector<std::pair<std::string, Sequential>> models{
      {"steps", Sequential(Conv1d(32, 3), GELU(), Dense(3))},
      {"features", Sequential(Conv1d(32, 3), Flatten(), Dense(3))},
      {"padded channels", Sequential(Conv1d(17, 3), Sigmoid(), Conv1d(19, 2), Flatten(), Dense(3))},
      {"features of two", Sequential([](Value x, GraphBuilder& b) {
         const Value flat = Flatten().build(Conv1d(32, 3).build(x, b), b);
         return b.apply(AddSpec{}, {flat, Tanh().build(flat, b), LayerNorm().build(flat, b)});
       })},
      {"norms", Sequential(Conv1d(32, 3, {.bias = false}), BatchNorm(), ReLU(), Conv1d(16, 3), LayerNorm())},
      {"a sum with what is plain", Sequential(Residual(Conv1d(32, 3, {.padding = 1}), Dense(32)), ReLU(), Dense(2))},
      {"two readers", Sequential(twice, Residual(Sequential(twice, ReLU(), depthwise)), ReLU(), depthwise)},
      {"joined", Sequential(Concat(Conv1d(16, 3, {.padding = 1}), Conv1d(8, 1)), Conv1d(4, 2))},
      {"attention", Sequential(Conv1d(32, 3), PositionalEmbedding(20), MultiHeadAttention(2), Conv1d(3, 2))}};
  for (const auto& [what, model] : models)
    for (std::size_t wanted = 0; wanted < 4; ++wanted) {
      const Shape input{2, 9, 32};
      const auto plain = make_reference_primitives();
      const Computed expected = compute(model, input, *plain), found = compute(model, input, *library, wanted);
      const std::string name = what + ", candidate " + std::to_string(wanted);
      check_close(name, found.output, expected.output, 1e-5F);
      check_close(name + " input gradient", found.input_gradient, expected.input_gradient, 1e-5F);
      for (std::size_t i = 0; i < expected.gradients.size(); ++i)
        check_close(name + " gradient", found.gradients[i], expected.gradients[i], 1e-5F);
    }
}

TEST_CASE("a convolution of sequences is one of images of a row: the same steps, picks and bits") {
  std::vector<std::shared_ptr<Primitives>> all{make_reference_primitives(), make_onednn_primitives(1),
                                               make_onednn_primitives(2), make_onednn_primitives(1, DType::bfloat16)};
  for (const auto& primitives : all) {
    for (const Windows1d& c : convolutions())
      check_as_of_rows(c.text(), Sequential(c.layer(), ReLU()), Sequential(c.row_layer(), ReLU()), c.input,
                       *primitives);
    const auto chain = [](const auto& convolution, const auto& pool, const auto& again) {
      return Sequential(convolution, ReLU(), pool, again, GELU(), Residual(again), ReLU(), GlobalAveragePool(),
                        Flatten(), Dense(3));
    };
    check_as_of_rows(
        "chain", chain(Conv1d(32, 3), MaxPool1d(2), Conv1d(32, 5, {.padding = same_padding})),
        chain(Conv2d(32, {1, 3}), MaxPool2d(HeightWidth(1, 2)), Conv2d(32, {1, 5}, {.padding = same_padding})),
        {3, 33, 3}, *primitives);
    check_as_of_rows(
        "average", Sequential(Conv1d(16, 2), AveragePool1d(3, 2, 1), MaxPool1d(2)),
        Sequential(Conv2d(16, {1, 2}), AveragePool2d({1, 3}, {1, 2}, {0, 1}), MaxPool2d(HeightWidth(1, 2))), {2, 17, 4},
        *primitives);
  }
}

TEST_CASE("a model of sequences reorders nothing between its convolutions") {
  const auto library = make_onednn_primitives(1);
  const Computed computed = compute(Sequential(Conv1d(32, 3), ReLU(), MaxPool1d(2), Conv1d(64, 3), ReLU(),
                                               Conv1d(64, 3), ReLU(), GlobalAveragePool(), Flatten(), Dense(4)),
                                    {2, 40, 16}, *library);
  CHECK(computed.picks.size() == 4);  // ReLUs and poolings are part of their convolutions
}

TEST_CASE("a weight of a convolution of sequences starts by the inputs that an output has") {
  const Graph graph = build_graph(Conv1d(6, 5, {.groups = 2}), {1, 9, 4});
  CHECK(graph.parameters[0].fan_in == 10);
  CHECK(graph.parameters[0].fan_out == 30);  // as PyTorch counts it
}

TEST_CASE("a convolution or pooling of sequences that does not fit is refused, and its field is named") {
  const auto refused = [](const std::function<Sequential()>& make, const Shape& input, const char* text) {
    require_mentions(message_of<InputError>([&] { static_cast<void>(build_graph(make(), input)); }), {text});
  };
  const auto convolution = [&](const Shape& input, std::int64_t outputs, std::int64_t kernel, Conv1dOptions options,
                               const char* text) {
    refused([&] { return Sequential(Conv1d(outputs, kernel, options)); }, input, text);
  };
  const Shape input{2, 5, 6};
  convolution(input, 8, 8, {.padding = 1},
              "convolution: .kernel = 8 does not fit sequences of 5 steps with .padding = 1");
  convolution(input, 8, 3, {.dilation = 3}, ".kernel = 3 with .dilation = 3 does not fit sequences of 5 steps");
  convolution(input, 8, 0, {}, ".kernel = 0 is not from 1");
  convolution(input, 8, 3, {.stride = 0}, ".stride = 0 is not from 1");
  convolution(input, 8, 3, {.padding = -1}, ".padding = -1 is not from 0");
  convolution(input, 8, 3, {.dilation = 0}, ".dilation = 0 is not from 1");
  convolution(input, 8, 3, {.groups = 4}, ".groups = 4 does not divide the 6 channels of the input");
  convolution(input, 8, 3, {.groups = 3}, ".groups = 3 does not divide the 8 channels of the output");
  convolution(input, 0, 3, {}, "at least one output channel");
  convolution(input, 8, 3, {.stride = 2, .padding = same_padding}, ".padding = same_padding has .stride = 1, not 2");
  convolution({2, 6}, 8, 3, {}, "a convolution of sequences takes (N, T, C), not (2, 6)");
  convolution({2, 1, 5, 6}, 8, 3, {}, "takes (N, T, C), not (2, 1, 5, 6)");
  refused([] { return Sequential(Conv2d(8, {1, 3})); }, input, "takes (N, H, W, C), not (2, 5, 6)");
  refused([] { return Sequential(MaxPool2d(HeightWidth(1, 2))); }, input, "takes (N, H, W, C), not (2, 5, 6)");
  refused([] { return Sequential(MaxPool1d(2)); }, {2, 1, 5, 6}, "takes (N, T, C), not (2, 1, 5, 6)");
  refused([] { return Sequential(MaxPool1d(6)); }, input, "pooling: .kernel = 6 does not fit sequences of 5 steps");
  refused([] { return Sequential(AveragePool1d(3, 1, 2)); }, input, ".padding = 2 is more than half of .kernel = 3");
  refused([] { return Sequential(GlobalAveragePool()); }, {2, 6}, "not (2, 6)");
  const Function square(
      [](Value x, GraphBuilder& b) { return b.apply(ConvolutionSpec{.outputs = 2, .kernel = 3}, {x}); });
  refused([&] { return Sequential(square); }, input, "a convolution takes (N, H, W, C)");
}
