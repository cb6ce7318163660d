// Operations of int8: oneDNN's backend against the plain loops, bit by bit, and the plain loops against float64.
#include "layers/comparison.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include <ronda/core/error.hpp>
#include <ronda/core/state.hpp>
#include <ronda/layers/int8.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/layers/onednn/int8_product.hpp>
#include <ronda/layers/program.hpp>

using namespace ronda;
using namespace ronda::test;

namespace {

/// A model's graph of int8, on one device, with parameters by name.
class Int8Model {
 public:
  Int8Model(const Layer& model, const Shape& input, Primitives& primitives)
      : input_(input), program_(graph_of(model, input), primitives, picker_, {.mode = Mode::evaluation}) {}

  [[nodiscard]] std::span<const Parameter> parameters() const { return program_.parameters(); }
  void set(std::string_view name, std::span<const float> values) const {
    from_file(find(name), values, find(name).value);
  }
  void set(std::string_view name, std::span<const std::int8_t> values) const {
    const Parameter& parameter = find(name);
    from_file(State{parameter.name, parameter.value, Scope::replicated, parameter.flattened}, values);
  }
  std::vector<float> operator()(std::vector<float> x) {
    const Tensor input({input_, DType::float32, {}}, x.data());
    CpuStream stream(1);
    const Tensor& y =
        program_.program().forward({&input, 1}, {.stream = stream, .mode = Mode::evaluation, .on_ready = {}});
    const auto outputs = y.as<const float>();
    return {outputs.begin(), outputs.end()};
  }

 private:
  static Graph graph_of(const Layer& model, const Shape& input) {
    Graph graph = build_graph(model, input);
    const auto weights = int8_weights(graph);
    return with_int8(std::move(graph), weights);
  }
  [[nodiscard]] const Parameter& find(std::string_view name) const {
    return *std::ranges::find(program_.parameters(), name, &Parameter::name);
  }

  Shape input_;
  FirstPicker picker_;
  HostProgram program_;
};

/// Sets parameters to random numbers; weights to all int8 that there are, the first channel to zeros, the last to the
/// largest.
void set_random(Int8Model& model, float zero) {
  std::uint64_t stream = 1;
  for (const Parameter& parameter : model.parameters()) {
    const std::int64_t count = parameter.value.desc().count();
    const std::vector<float> numbers = random_numbers(count, stream++, 1);
    if (parameter.value.dtype() == DType::int8) {
      const std::int64_t row = count / parameter.value.shape()[0];
      std::vector<std::int8_t> weights;
      for (std::int64_t i = 0; i < count; ++i)
        weights.push_back(i < row            ? std::int8_t{0}
                          : i >= count - row ? std::int8_t{127}
                                             : static_cast<std::int8_t>(127 * numbers[static_cast<std::size_t>(i)]));
      model.set(parameter.name, std::span<const std::int8_t>(weights));
    } else if (parameter.name.ends_with("input_zero")) {
      model.set(parameter.name, std::vector{zero});
    } else if (parameter.name.ends_with("input_scale")) {
      model.set(parameter.name, std::vector{1.0F / 100});
    } else {
      model.set(parameter.name, numbers);
    }
  }
}

/// Every bit; NaN is NaN.
void check_equal(const std::string& what, const std::vector<float>& found, const std::vector<float>& expected) {
  REQUIRE(found.size() == expected.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    wrong += found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i])) ? 0 : 1;
  INFO(what);
  CHECK(wrong == 0);
}

void compare_int8(const std::string& what, const Layer& layer, const Shape& input) {
  const auto reference = make_reference_primitives();
  for (const float zero : {0.0F, 128.0F, 255.0F})
    for (const int threads : {1, 3}) {
      const auto library = make_onednn_primitives(threads);
      Int8Model ours(layer, input, *library), plain(layer, input, *reference);
      set_random(ours, zero);
      set_random(plain, zero);
      std::vector<float> x = random_numbers(input.count(), 90, 3);  // some lie outside of what a byte holds
      check_equal(what, ours(x), plain(x));
      x.front() = std::numeric_limits<float>::max();
      x.back() = std::numeric_limits<float>::lowest();
      check_equal(what + ", extreme", ours(x), plain(x));
      x[x.size() / 2] = std::numeric_limits<float>::quiet_NaN();
      x.front() = -std::numeric_limits<float>::infinity();
      check_equal(what + ", not finite", ours(x), plain(x));
    }
}

}  // namespace

TEST_CASE("a dense operation of int8 gives what the plain loops give") {
  for (const Shape& input : {Shape{1, 1}, Shape{5, 17}, Shape{31, 64}, Shape{3, 130}, Shape{50, 7}})
    for (const std::int64_t outputs : {1, 10, 16, 33, 64, 113})
      for (const bool bias : {true, false}) {
        const std::string what = "dense " + input.text() + " to " + std::to_string(outputs);
        compare_int8(what, Dense(outputs, bias), input);
        if (bias) compare_int8(what + " with ReLU", Sequential(Dense(outputs), ReLU()), input);
      }
}

TEST_CASE("a convolution of int8 gives what the plain loops give") {
  struct Case {
    Shape input;
    std::int64_t outputs;
    HeightWidth kernel;
    Conv2dOptions options;
  };
  for (const Case& c :
       {Case{{2, 9, 8, 1}, 32, 3, {}}, Case{{1, 1, 1, 1}, 1, 1, {}}, Case{{3, 7, 6, 1}, 17, 5, {.padding = 2}},
        Case{{2, 9, 9, 1}, 5, 3, {.padding = 1, .dilation = 2}}, Case{{2, 8, 9, 3}, 16, 3, {.stride = 2, .padding = 1}},
        Case{{2, 6, 7, 32}, 64, 3, {.bias = false}},
        Case{{1, 8, 8, 17}, 20, {1, 7}, {.stride = {2, 1}, .padding = {0, 3}}},
        Case{{2, 9, 9, 6}, 70, {3, 2}, {.stride = {1, 3}, .padding = {2, 1}, .dilation = {2, 3}}},
        Case{{2, 5, 6, 4}, 9, {2, 4}, {.padding = same_padding}}}) {
    const Conv2d layer(c.outputs, c.kernel, c.options);
    const std::string what = "convolution " + c.input.text() + " to " + std::to_string(c.outputs);
    compare_int8(what, layer, c.input);
    compare_int8(what + " with ReLU", Sequential(layer, ReLU()), c.input);
  }
}

TEST_CASE("a convolution of int8 of sequences gives what the plain loops give") {
  for (const Shape& input : {Shape{2, 9, 1}, Shape{3, 12, 5}, Shape{1, 20, 32}}) {
    const Conv1d same(17, 4, {.padding = same_padding}), plain(16, 3, {.stride = 2, .padding = 1, .dilation = 2});
    compare_int8("same", Sequential(same, ReLU(), MaxPool1d(2)), input);
    compare_int8("strides", Sequential(plain, ReLU(), Conv1d(5, 2)), input);
  }
}

TEST_CASE("a convolution of int8 with its pooling gives what the plain loops give") {
  for (const Shape& input : {Shape{2, 12, 11, 1}, Shape{3, 9, 10, 5}}) {
    const Conv2d convolution(20, 3);
    compare_int8("side by side", Sequential(convolution, ReLU(), MaxPool2d(2)), input);
    compare_int8("with gaps", Sequential(convolution, MaxPool2d(2, 3)), input);
    compare_int8("overlapping", Sequential(convolution, ReLU(), MaxPool2d(3, 2)), input);
    compare_int8("padded", Sequential(convolution, ReLU(), MaxPool2d(3, 2, 1)), input);
  }
}

TEST_CASE("a model of int8 reads features behind a flatten in the order of files") {
  const auto library = make_onednn_primitives(1), reference = make_reference_primitives();
  const Sequential model(Conv2d(6, 3), ReLU(), MaxPool2d(2), Flatten(), Dense(12), ReLU(), Dense(3));
  compare_int8("small network", model, {3, 10, 8, 2});
}

TEST_CASE("steps of a sequence are rows of a dense operation of int8") {
  compare_int8("sequence", Dense(5), {3, 4, 9});
}

TEST_CASE("the plain loops of int8 are within the rounding of the operation in float32") {
  const auto primitives = make_reference_primitives();
  const Shape input{4, 9, 9, 3};
  const Sequential model(Conv2d(8, 3, 1, 1));
  Int8Model quantized(model, input, *primitives);
  FirstPicker picker;
  HostProgram exact(build_graph(model, input), *primitives, picker, {.mode = Mode::evaluation});
  std::vector<float> x = random_numbers(input.count(), 3, 2);
  const std::vector<float> weight = random_numbers(8 * 3 * 9, 4, 0.5F), bias = random_numbers(8, 5, 1);
  from_file(exact.parameters()[0], weight, exact.parameters()[0].value);
  from_file(exact.parameters()[1], bias, exact.parameters()[1].value);

  const Int8Weight q = int8_weight(weight, 8);
  const Int8Input scale = int8_input({.weight = "conv1.weight", .least = -2, .most = 2});
  CHECK((scale.zero == 127 || scale.zero == 128));  // 127.5, rounded
  quantized.set("conv1.weight", std::span<const std::int8_t>(q.values));
  quantized.set("conv1.weight_scale", q.scales);
  quantized.set("conv1.input_scale", std::vector{scale.scale});
  quantized.set("conv1.input_zero", std::vector{scale.zero});
  quantized.set("conv1.bias", bias);

  CpuStream stream(1);
  const Tensor given({input, DType::float32, {}}, x.data());
  const Tensor& y = exact.program().forward({&given, 1}, {.stream = stream, .mode = Mode::evaluation, .on_ready = {}});
  // Each of the 27 products is off by half a step of the input times a weight, and half a step of the weight times an
  // input.
  const double most = 27 * (scale.scale / 2 * 0.5 + 0.5 / 127 / 2 * 2);
  const std::vector<float> found = quantized(x);
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    worst = std::max<double>(worst, std::abs(found[i] - y.pointer<float>()[i]));
  CHECK(worst < most);
  CHECK(worst > 0);
}

TEST_CASE("sums of the largest bytes and weights are exact") {
  constexpr std::int64_t inputs = int8_most_inputs;
  const auto library = make_onednn_primitives(1);
  Int8Model model(Dense(2, false), {1, inputs}, *library);
  std::vector<std::int8_t> weights(2 * inputs, 127);
  std::fill_n(weights.begin(), inputs, std::int8_t{-127});
  model.set("dense1.weight", std::span<const std::int8_t>(weights));
  model.set("dense1.weight_scale", std::vector{1.0F, 1.0F});
  model.set("dense1.input_scale", std::vector{1.0F});
  model.set("dense1.input_zero", std::vector{0.0F});
  const auto sum = static_cast<float>(inputs * 255 * 127);
  CHECK(model(std::vector<float>(inputs, 300)) == std::vector{-sum, sum});
}

TEST_CASE("products of int8 are the same with each processor's instructions") {
  for (const std::int64_t outputs : {1, 16, 37, 128})
    for (const std::int64_t rows : {1, 5, 6, 13}) {
      constexpr std::int64_t depth = 36;
      std::vector<std::uint8_t> x(static_cast<std::size_t>(rows * depth));
      std::vector<std::int8_t> weight(static_cast<std::size_t>((outputs + 15) / 16 * 16 * depth));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 3 == 0 ? 255 : static_cast<std::uint8_t>(i * 37);
      for (std::size_t i = 0; i < weight.size(); ++i)
        weight[i] = i % 5 == 0 ? std::int8_t{-127} : static_cast<std::int8_t>(i * 91 % 255 - 127);
      const std::vector<float> scale = random_numbers(144, 1, 2), bias = random_numbers(144, 2, 1000);
      const std::vector<std::int32_t> taps{0, 4, 8, 12, 16, 20, 24, 28, 32}, shift(144, 12345);
      const onednn::Int8Product product{taps, weight.data(), outputs, scale.data(), bias.data(), shift.data(), true};
      std::vector<float> found(static_cast<std::size_t>(rows * outputs)), plain(found);
      using Kernel = onednn::Int8Product::Kernel;
      product.run(x.data(), depth, rows, plain.data(), Kernel::plain);
      for (const Kernel kernel : {Kernel::avx2, Kernel::vnni}) {
        if (kernel > onednn::Int8Product::best()) continue;
        product.run(x.data(), depth, rows, found.data(), kernel);
        check_equal(std::to_string(rows) + " rows of " + std::to_string(outputs), found, plain);
      }
    }
}

TEST_CASE("weights of zeros, and tiny ones, become zeros with a scale that is usable") {
  const Int8Weight q = int8_weight(std::vector<float>{0, 0, 1e-40F, -1e-44F, -3, 1.5F}, 3);
  CHECK(q.values == std::vector<std::int8_t>{0, 0, 0, 0, -127, 64});
  CHECK(q.scales == std::vector{1.0F, 1.0F, 3.0F / 127});
  CHECK(int8_input({}).scale == 1);
  CHECK(int8_input({.weight = {}, .least = 0, .most = 51}).zero == 0);
  CHECK(
      int8_input({.weight = {}, .least = -std::numeric_limits<float>::max(), .most = std::numeric_limits<float>::max()})
          .scale < std::numeric_limits<float>::infinity());
}

TEST_CASE("the correction of biases takes out what rounding the weights changes on average") {
  constexpr std::int64_t outputs = 3, channels = 2, kernel = 4;
  const std::vector<float> weight = random_numbers(outputs * channels * kernel, 8, 1);
  const Int8Weight q = int8_weight(weight, outputs);
  InputRange range;
  range.sums = {30, -5};
  range.count = 10;
  const std::vector<float> correction = int8_bias_correction(weight, q, range);
  REQUIRE(correction.size() == outputs);
  for (std::size_t o = 0; o < outputs; ++o) {
    double exact = 0, rounded = 0;
    for (std::size_t i = 0; i < channels * kernel; ++i) {
      const double mean = i < kernel ? 3 : -0.5;
      exact += mean * weight[o * channels * kernel + i];
      rounded += mean * q.scales[o] * q.values[o * channels * kernel + i];
    }
    CHECK(rounded + correction[o] == Approx(exact).margin(1e-6));
    CHECK(rounded != Approx(exact).margin(1e-6));
  }
  CHECK(int8_bias_correction(weight, q, {}) == std::vector<float>(outputs));
}

TEST_CASE("int8 is for dense layers and convolutions without groups, and others are told") {
  const Sequential model(Conv2d(8, 3), ReLU(), Conv2d(8, 3, {.groups = 2}), BatchNorm(), Flatten(), Dense(3));
  const Graph graph = build_graph(model, {2, 9, 9, 2});
  CHECK(int8_weights(graph) == std::vector<std::string>{"conv1.weight", "dense1.weight"});
  const std::vector<std::string> grouped{"conv2.weight"};
  CHECK_THROWS_AS(with_int8(graph, grouped), InputError);
  const Graph wide = build_graph(Dense(1), {1, int8_most_inputs + 1});
  CHECK(int8_weights(wide).empty());
}

TEST_CASE("ranges are of what operations are given, 0 included, and tell what is not finite") {
  const auto library = make_onednn_primitives(1);
  std::deque<InputRange> ranges;
  FirstPicker picker;
  HostProgram program(with_ranges(build_graph(Sequential(Dense(2), ReLU(), Dense(1)), {2, 2}), ranges), *library,
                      picker, {.mode = Mode::evaluation});
  from_file(program.parameters()[0], std::vector<float>{1, 0, 0, 2}, program.parameters()[0].value);
  std::vector<float> x{1, -3, 2, 5};
  const Tensor given({{2, 2}, DType::float32, {}}, x.data());
  CpuStream stream(1);
  const auto run = [&] {
    static_cast<void>(
        program.program().forward({&given, 1}, {.stream = stream, .mode = Mode::evaluation, .on_ready = {}}));
  };
  run();
  REQUIRE(ranges.size() == 2);
  CHECK(ranges[0].weight == "dense1.weight");
  CHECK((ranges[0].least == -3 && ranges[0].most == 5));
  CHECK((ranges[1].least == 0 && ranges[1].most == 10));
  CHECK(ranges[1].finite);
  CHECK((ranges[0].bias == "dense1.bias" && ranges[0].count == 2));
  CHECK(ranges[0].sums == std::vector<double>{3, 2});
  x[0] = std::numeric_limits<float>::quiet_NaN();
  run();
  CHECK_FALSE(ranges[0].finite);
}
