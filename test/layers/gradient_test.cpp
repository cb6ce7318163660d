// The plain loops against finite differences: everything else is compared with the plain loops.
#include <ronda/layers/operation.hpp>
#include <ronda/layers/program.hpp>

#include "layers/bench.hpp"
#include "support/gradient_probe.hpp"
#include "support/operations.hpp"
#include "support/plain_model.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

using namespace ronda;
using namespace ronda::test;

namespace {

void check(const Layer& layer, const Shape& shape, const std::string& what) {
  check_against_differences(what + " " + shape.text(), layer, shape);
}

/// With windows that are no squares, have steps in them, or see some channels alone; and images that just hold them.
std::vector<std::pair<Shape, Conv2d>> unusual_convolutions() {
  return {{{2, 5, 9, 3}, Conv2d(4, {1, 7})},
          {{2, 9, 5, 3}, Conv2d(4, {7, 1}, {.padding = {3, 0}})},
          {{1, 4, 5, 2}, Conv2d(3, 3, {.stride = {1, 3}, .padding = {1, 0}})},
          {{2, 7, 8, 3}, Conv2d(2, {3, 2}, {.stride = {2, 1}, .padding = {2, 1}, .dilation = {2, 3}, .bias = false})},
          {{1, 5, 5, 2}, Conv2d(3, 3, {.dilation = 2})},
          {{2, 5, 4, 5}, Conv2d(5, 3, {.padding = 1, .groups = 5})},
          {{2, 5, 4, 3}, Conv2d(6, {1, 3}, {.groups = 3})},
          {{2, 5, 6, 6}, Conv2d(4, 3, {.stride = 2, .padding = 1, .groups = 2})},
          {{2, 4, 5, 3}, Conv2d(2, {2, 4}, {.padding = same_padding})},
          {{1, 3, 2, 4}, Conv2d(4, {4, 2}, {.padding = same_padding, .dilation = {1, 3}, .groups = 2})}};
}

}  // namespace

TEST_CASE("dense gradients equal finite differences") {
  for (const Shape& shape : {Shape{1, 1}, Shape{5, 17}, Shape{3, 32}})
    for (const bool bias : {true, false}) {
      Dense plain(7, bias);
      check(plain, shape, "dense");
      Sequential fused(Dense(6, bias), ReLU());
      check(fused, shape, "dense with relu");
    }
}

TEST_CASE("convolution gradients equal finite differences") {
  struct Case {
    Shape input;
    std::int64_t outputs, kernel, stride, padding;
  };
  for (const Case& c : {Case{{2, 5, 5, 1}, 3, 3, 1, 0}, Case{{1, 1, 1, 3}, 4, 1, 1, 0}, Case{{2, 6, 5, 3}, 2, 3, 2, 1},
                        Case{{1, 4, 7, 17}, 5, 3, 1, 1}, Case{{2, 1, 1, 2}, 3, 3, 1, 1}}) {
    Conv2d plain(c.outputs, c.kernel, c.stride, c.padding);
    check(plain, c.input, "conv");
    Sequential fused(Conv2d(c.outputs, c.kernel, c.stride, c.padding), ReLU());
    check(fused, c.input, "conv with relu");
  }
  for (const auto& [input, layer] : unusual_convolutions()) {
    check(layer, input, "unusual conv");
    check(Sequential(layer, ReLU()), input, "unusual conv with relu");
  }
  Sequential pooled(Conv2d(3, 3), ReLU(), MaxPool2d(2));
  check(pooled, {2, 8, 9, 2}, "conv, relu and max pool");
  Sequential averaged(Conv2d(3, 3), AveragePool2d(3, 2, 1));
  check(averaged, {2, 8, 7, 2}, "conv and average pool");
}

namespace {

/// PyTorch's Conv2d: sums over an image with its zeros around it.
struct PlainConvolution {
  HeightWidth kernel, stride, before, after, dilation;
  std::int64_t groups;

  /// @param in  (N, H, W, C), of x
  [[nodiscard]] std::vector<float> operator()(std::span<const float> x, const Shape& in, std::span<const float> weight,
                                              std::span<const float> bias) const {
    const std::int64_t height = in[1] + before.height + after.height, width = in[2] + before.width + after.width;
    const auto padded = [&](std::int64_t n, std::int64_t row, std::int64_t column, std::int64_t c) -> double {
      const std::int64_t h = row - before.height, w = column - before.width;
      const bool zero = h < 0 || h >= in[1] || w < 0 || w >= in[2];
      return zero ? 0 : x[static_cast<std::size_t>(((n * in[1] + h) * in[2] + w) * in[3] + c)];
    };
    const auto outputs = static_cast<std::int64_t>(bias.size());
    const std::int64_t each = in[3] / groups;
    std::vector<float> y;
    for (std::int64_t n = 0; n < in[0]; ++n)
      for (std::int64_t top = 0; top + dilation.height * (kernel.height - 1) < height; top += stride.height)
        for (std::int64_t left = 0; left + dilation.width * (kernel.width - 1) < width; left += stride.width)
          for (std::int64_t o = 0; o < outputs; ++o) {
            double sum = bias[static_cast<std::size_t>(o)];
            const std::int64_t group = o * groups / outputs;
            auto next = static_cast<std::size_t>(o * each * kernel.area());
            for (std::int64_t c = group * each; c < (group + 1) * each; ++c)
              for (std::int64_t kh = 0; kh < kernel.height; ++kh)
                for (std::int64_t kw = 0; kw < kernel.width; ++kw)
                  sum += weight[next++] * padded(n, top + kh * dilation.height, left + kw * dilation.width, c);
            y.push_back(static_cast<float>(sum));
          }
    return y;
  }
};

}  // namespace

TEST_CASE("convolutions of all windows, paddings, dilations and groups give PyTorch's sums") {
  struct Case {
    Shape input;
    Conv2d layer;
    PlainConvolution plain;
    std::int64_t outputs;
    Shape output;
  };
  for (const Case& c :
       {Case{{2, 5, 9, 3}, Conv2d(4, {1, 7}), {{1, 7}, 1, 0, 0, 1, 1}, 4, {2, 5, 3, 4}},
        Case{{2, 9, 5, 3}, Conv2d(4, {7, 1}, {.padding = {3, 0}}), {{7, 1}, 1, {3, 0}, {3, 0}, 1, 1}, 4, {2, 9, 5, 4}},
        Case{{1, 4, 5, 2}, Conv2d(3, 3, {.stride = {1, 3}}), {3, {1, 3}, 0, 0, 1, 1}, 3, {1, 2, 1, 3}},
        Case{{2, 7, 8, 3},
             Conv2d(2, {3, 2}, {.stride = {2, 1}, .padding = {2, 1}, .dilation = {2, 3}}),
             {{3, 2}, {2, 1}, {2, 1}, {2, 1}, {2, 3}, 1},
             2,
             {2, 4, 7, 2}},
        Case{{2, 5, 4, 5}, Conv2d(5, 3, {.padding = 1, .groups = 5}), {3, 1, 1, 1, 1, 5}, 5, {2, 5, 4, 5}},
        Case{{2, 5, 6, 6}, Conv2d(4, 3, {.groups = 2}), {3, 1, 0, 0, 1, 2}, 4, {2, 3, 4, 4}},
        Case{{2, 4, 5, 3},
             Conv2d(2, {2, 5}, {.padding = same_padding}),
             {{2, 5}, 1, {0, 2}, {1, 2}, 1, 1},
             2,
             {2, 4, 5, 2}},
        Case{{1, 3, 2, 4},
             Conv2d(8, 4, {.padding = same_padding, .dilation = {1, 3}, .groups = 4}),
             {4, 1, {1, 4}, {2, 5}, {1, 3}, 4},
             8,
             {1, 3, 2, 8}}}) {
    INFO(c.input.text() << " to " << c.output.text());
    const auto primitives = make_reference_primitives();
    FirstPicker picker;
    PlainModel model(c.layer, c.input, *primitives, picker);
    CHECK(model.output().shape == c.output);
    CHECK(model.parameters()[0].value.shape() ==
          Shape{c.outputs, c.input[3] / c.plain.groups, c.plain.kernel.height, c.plain.kernel.width});
    std::vector<float> x = random_numbers(c.input.count(), 1, 1);
    const auto found = model.forward(Tensor({c.input, DType::float32, {}}, x.data())).as<float>();
    const auto numbers = [&](std::size_t i) { return to_file(model.parameters()[i], model.parameters()[i].value); };
    check_close("convolution", {found.begin(), found.end()}, c.plain(x, c.input, numbers(0), numbers(1)), 1e-6F);
  }
}

TEST_CASE("a convolution that does not fit is refused, and its field is named") {
  const auto error_of = [](const Shape& input, std::int64_t outputs, HeightWidth kernel, const Conv2dOptions& options) {
    try {
      static_cast<void>(build_graph(Conv2d(outputs, kernel, options), input));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(error_of({2, 5, 5, 8}, 8, 5, {.groups = 8}).empty());
  CHECK_THAT(error_of({2, 5, 5, 8}, 6, 3, {.groups = 3}), Contains(".groups = 3 does not divide the 8 channels"));
  CHECK_THAT(error_of({2, 5, 5, 6}, 8, 3, {.groups = 3}), Contains("does not divide the 8 channels of the output"));
  CHECK_THAT(error_of({2, 5, 5, 6}, 8, 3, {.groups = 0}), Contains(".groups = 0"));
  CHECK_THAT(error_of({2, 5, 5, 6}, 8, {1, 0}, {}), Contains(".kernel = 1x0"));
  CHECK_THAT(error_of({2, 5, 5, 6}, 8, 3, {.stride = {1, 0}}), Contains(".stride = 1x0"));
  CHECK_THAT(error_of({2, 5, 5, 6}, 8, 3, {.padding = {-1, 0}}), Contains(".padding = -1x0"));
  CHECK_THAT(error_of({2, 5, 5, 6}, 8, 3, {.dilation = 0}), Contains(".dilation = 0"));
  CHECK_THAT(error_of({2, 5, 9, 6}, 8, 3, {.dilation = 3}),
             Contains(".kernel = 3 with .dilation = 3 does not fit images of 5x9 pixels"));
  CHECK_THAT(error_of({2, 5, 5, 6}, 8, {1, 6}, {}), Contains(".kernel = 1x6 does not fit"));
  CHECK_THAT(error_of({2, 5, 5, 6}, 8, 3, {.stride = 2, .padding = same_padding}), Contains(".stride = 1, not 2"));
}

TEST_CASE("a weight of a grouped convolution starts by the inputs that an output has") {
  const Graph graph = build_graph(Conv2d(6, {3, 2}, {.groups = 2}), {1, 5, 5, 4});
  CHECK(graph.parameters[0].fan_in == 12);
  CHECK(graph.parameters[0].fan_out == 36);  // as PyTorch counts it
}

namespace {

/// An embedding on tokens, whole gradients: a sum of the outputs with random weights is differentiated.
void check_embedding(const Layer& layer, const EmbeddingSpec& spec, std::vector<std::int32_t> tokens,
                     const Shape& sample) {
  const Field field{"input", sample, DType::int32};
  const std::size_t samples = tokens.size() / static_cast<std::size_t>(std::max<std::int64_t>(sample.count(), 1));
  const auto primitives = make_reference_primitives();
  FirstPicker picker;
  HostProgram model(build_graph(layer, {&field, 1}, samples), *primitives, picker);
  CHECK(model.parameters()[0].name == std::string(layer.kind()) + "1.weight");
  const auto table = model.parameters()[0].value.as<float>(), gradient = model.parameters()[0].gradient.as<float>();
  fill(model.parameters()[0].value, 1, 1);
  const Tensor input({model.program().input_desc(0).shape, DType::int32, {}}, tokens.data());
  CpuStream stream;
  StepControl control;
  const Pass pass{.stream = stream, .control = &control, .on_ready = {}};
  const auto outputs = model.program().forward({&input, 1}, pass).as<float>();
  const std::size_t width = static_cast<std::size_t>(spec.width), each = static_cast<std::size_t>(sample.count());
  std::vector<float> expected(outputs.size()), expected_gradient(table.size());
  fill(model.program().output_gradient(), 2, 1);
  const auto dy = model.program().output_gradient().as<float>();
  for (std::size_t n = 0; n < samples; ++n) {
    std::size_t count = 0;
    for (std::size_t t = 0; t < each; ++t) count += tokens[n * each + t] != spec.padding ? 1 : 0;
    const float factor = spec.bag == BagMode::mean && count > 0 ? 1 / static_cast<float>(count) : 1;
    for (std::size_t t = 0; t < each; ++t)
      for (std::size_t i = 0; i < width; ++i) {
        const std::int32_t token = tokens[n * each + t];
        const std::size_t at = (spec.bag ? n : n * each + t) * width + i;
        const float element = token < 0 ? 0 : table[static_cast<std::size_t>(token) * width + i];
        if (!spec.bag)
          expected[at] = element;
        else if (token != spec.padding)
          expected[at] += factor * element;
        if (token != spec.padding) expected_gradient[static_cast<std::size_t>(token) * width + i] += factor * dy[at];
      }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i)
    REQUIRE(outputs[i] == Approx(expected[i]).epsilon(1e-5).margin(1e-6));
  model.program().backward(pass);
  for (std::size_t i = 0; i < gradient.size(); ++i)
    REQUIRE(gradient[i] == Approx(expected_gradient[i]).epsilon(1e-5).margin(1e-6));
  const auto value = [&] {
    double sum = 0;
    const auto y = model.program().forward({&input, 1}, pass).as<float>();
    for (std::size_t i = 0; i < y.size(); ++i) sum += double{y[i]} * dy[i];
    return sum;
  };
  for (std::size_t i = 0; i < table.size(); i += 3) {
    if (static_cast<std::int64_t>(i / width) == spec.padding) continue;  // read by an embedding, and never trained
    const float kept = table[i];
    table[i] = kept + 0.5F;
    const double above = value();
    table[i] = kept - 0.5F;
    const double below = value();
    table[i] = kept;
    REQUIRE(gradient[i] == Approx(above - below).epsilon(1e-4).margin(1e-4));  // linear: rounding alone
  }
}

}  // namespace

TEST_CASE("embeddings look rows up, bags add them, and gradients go back to the rows") {
  const std::vector<std::int32_t> ragged{3, 1, -1, -1, 1, 1, 1, 6, -1, -1, -1, -1, 0, 2, 4, 5};
  for (const std::int64_t width : {1, 3, 16}) {
    check_embedding(Embedding(7, width), {.rows = 7, .width = width}, ragged, {4});
    check_embedding(Embedding(7, width), {.rows = 7, .width = width}, ragged, {2, 2});
    check_embedding(Embedding(7, width), {.rows = 7, .width = width}, ragged, {});
    for (const BagMode mode : {BagMode::sum, BagMode::mean}) {
      check_embedding(EmbeddingBag(7, width, mode), {.rows = 7, .width = width, .bag = mode}, ragged, {4});
      check_embedding(EmbeddingBag(9, width, mode, {.padding = 2}),
                      {.rows = 9, .width = width, .padding = 2, .bag = mode}, {2, 2, 0, 8, 2, 1, 7, 7, 3}, {3});
    }
  }
  check_embedding(Embedding(5, 2, {.padding = 0}), {.rows = 5, .width = 2, .padding = 0}, {0, 4, 0, 1}, {2});
}

TEST_CASE("tokens that an embedding does not have, and inputs that are none, are refused") {
  const auto error_of = [](const Layer& layer, const Field& field, std::vector<std::int32_t> tokens) {
    try {
      const auto primitives = make_reference_primitives();
      FirstPicker picker;
      HostProgram model(build_graph(layer, {&field, 1}, 2), *primitives, picker);
      const Tensor input({model.program().input_desc(0).shape, DType::int32, {}}, tokens.data());
      CpuStream stream;
      static_cast<void>(model.program().forward({&input, 1}, {.stream = stream, .on_ready = {}}));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const Field tokens{"input", {3}, DType::int32}, floats{"input", {3}, DType::float32};
  CHECK(error_of(EmbeddingBag(7, 2), tokens, {0, 1, 6, -1, -1, 0}).empty());
  CHECK_THAT(error_of(EmbeddingBag(7, 2), tokens, {0, 1, 2, 3, 7, 5}),
             Contains("sample 1 of the batch has token 7 at place 1") && Contains("0 to 6"));
  CHECK_THAT(error_of(Embedding(7, 2, {.padding = 0}), tokens, {0, -1, 2, 3, 4, 5}), Contains("token -1"));
  CHECK_THAT(error_of(Embedding(7, 2), floats, {}), Contains("takes tokens, int32, not float32"));
  CHECK_THAT(error_of(EmbeddingBag(7, 2), Field{"input", {3, 2}, DType::int32}, {}), Contains("(N, tokens)"));
  CHECK_THAT(error_of(Embedding(0, 2), tokens, {}), Contains("at least one row"));
  CHECK_THAT(error_of(Embedding(3, 2, {.padding = 3}), tokens, {}), Contains("padding"));
}

TEST_CASE("pooling gradients equal finite differences") {
  for (const std::int64_t padding : {0, 1}) {
    MaxPool2d largest(3, 2, padding);
    check(largest, {2, 7, 6, 3}, "max pool");
    AveragePool2d mean(3, 2, padding);
    check(mean, {2, 7, 6, 3}, "average pool");
  }
  check(MaxPool2d({1, 3}, {2, 1}), {2, 5, 6, 3}, "max pool of rows");
  check(AveragePool2d({3, 2}, {1, 2}, {1, 0}), {2, 5, 6, 3}, "average pool of unequal sides");
  check(GlobalAveragePool(), {2, 5, 3, 4}, "global average pool");
  check(Sequential(Conv2d(3, 3), ReLU(), GlobalAveragePool(), Flatten(), Dense(2)), {2, 5, 6, 2},
        "global average pool behind a convolution");
}

TEST_CASE("gradients of every function of an element equal finite differences") {
  for (const ElementwiseFunction function : every_function) {
    const auto apply = [function](Value x, GraphBuilder& builder) {
      return builder.apply(ElementwiseSpec{function}, {x});
    };
    check(Sequential(apply), {3, 50}, kind_of(ElementwiseSpec{function}));
  }
}

TEST_CASE("layer norm gradients equal finite differences") {
  for (const Shape& shape : {Shape{3, 1}, Shape{4, 17}, Shape{2, 3, 9}, Shape{2, 4, 3, 5}})
    for (const bool affine : {true, false}) {
      check(LayerNorm(1, 1e-2F, affine), shape, "layer norm");
      check(LayerNorm(shape.rank() - 1, 1e-2F, affine), shape, "layer norm of whole samples");
    }
  check(Sequential(Conv2d(6, 3), LayerNorm(), Conv2d(4, 1), Flatten(), LayerNorm(1, 1e-5F, true, false)), {2, 6, 6, 3},
        "layer norms behind convolutions");
}

TEST_CASE("batch norm gradients equal finite differences") {
  // With the usual epsilon two rows are normalised to plus and minus 1 whatever they were: nothing is left to compare.
  for (const Shape& shape : {Shape{2, 3}, Shape{9, 17}, Shape{3, 4, 5}, Shape{2, 4, 3, 5}})
    for (const bool affine : {true, false}) check(BatchNorm(0.1F, 0.1F, affine), shape, "batch norm");
  check(Sequential(Conv2d(6, 3), BatchNorm(1e-2F), ReLU(), Flatten(), BatchNorm(0.1F), Dense(3)), {4, 5, 6, 2},
        "batch norms behind a convolution and a flatten");
}

TEST_CASE("dropout gradients equal finite differences") {
  for (const Shape& shape : {Shape{3, 1}, Shape{4, 17}, Shape{2, 3, 9}, Shape{2, 4, 3, 5}})
    check(Dropout(0.4), shape, "dropout");
  check(Sequential(Dense(9), Dropout(), Dense(4)), {3, 5}, "dropout between dense layers");
}

TEST_CASE("a flattened image gives a dense layer the same columns, whatever lies between") {
  Sequential model(Conv2d(4, 3), Flatten(), Dense(5));
  check(model, {2, 5, 4, 2}, "conv, flatten, dense");
}

TEST_CASE("a global average pool gives the mean of each channel, of images of any size") {
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{3, 5, 2, 4}, Shape{2, 1, 9, 17}}) {
    const auto primitives = make_reference_primitives();
    FirstPicker picker;
    PlainModel model(GlobalAveragePool(), shape, *primitives, picker);
    REQUIRE(model.output().shape == Shape{shape[0], 1, 1, shape[3]});
    std::vector<float> x = random_numbers(shape.count(), 1, 1);
    const auto found = model.forward(Tensor({shape, DType::float32, {}}, x.data())).as<float>();
    const std::int64_t pixels = shape[1] * shape[2], channels = shape[3];
    for (std::int64_t n = 0; n < shape[0]; ++n)
      for (std::int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (std::int64_t p = 0; p < pixels; ++p) sum += x[static_cast<std::size_t>((n * pixels + p) * channels + c)];
        CHECK(found[static_cast<std::size_t>(n * channels + c)] ==
              Approx(sum / static_cast<double>(pixels)).margin(1e-6));
      }
  }
  CHECK_THROWS_AS(build_graph(GlobalAveragePool(), {2, 8}), InputError);
}
