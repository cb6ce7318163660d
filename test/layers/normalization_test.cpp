// Layer and batch normalisation: the processor's loops against the plain ones, and those against the formula.
#include "layers/bench.hpp"
#include "support/catch.hpp"
#include "support/plain_model.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>

using namespace ronda;
using namespace ronda::test;

namespace {

std::unique_ptr<Operation> make_layer_norm(Primitives& primitives, const TensorDesc& input, const LayerNormSpec& spec,
                                           const OperationContext& context) {
  return primitives.make(spec, {&input, 1}, context);
}

}  // namespace

TEST_CASE("a layer norm gives each row mean 0 and variance 1, then its weight and bias") {
  const auto plain = make_reference_primitives(), library = make_onednn_primitives(1);
  FirstPicker picker;
  const Shape shape{3, 2, 50};
  for (Primitives* primitives : {plain.get(), library.get()}) {
    PlainModel model(LayerNorm(), shape, *primitives, picker);
    REQUIRE(model.parameters().size() == 2);
    for (const Parameter& parameter : model.parameters()) CHECK(parameter.value.shape() == Shape{50});
    Owned x({shape, DType::float32, {}}, 0);
    fill(x.tensor, 1, 4);
    for (float& element : x.tensor.as<float>()) element += 1000;  // float32 holds it to 6e-5
    const auto y = model.forward(x.tensor).as<float>(), w = model.parameters()[0].value.as<float>(),
               b = model.parameters()[1].value.as<float>();
    for (std::size_t row = 0; row < 6; ++row) {
      double mean = 0, squares = 0;
      const auto values = x.tensor.as<float>().subspan(row * 50, 50);
      for (const float value : values) mean += double{value} / 50;
      for (const float value : values) squares += (value - mean) * (value - mean) / 50;
      for (std::size_t i = 0; i < 50; ++i) {
        const double expected = (values[i] - mean) / std::sqrt(squares + 1e-5) * w[i] + b[i];
        CHECK(y[row * 50 + i] == Approx(expected).margin(1e-4));  // the mean is rounded to 6e-5
      }
    }
  }
}

TEST_CASE("layer norms equal the plain loops, and keep NaN to its row") {
  for (const Shape& shape : {Shape{1, 1}, Shape{5, 3}, Shape{2, 16}, Shape{7, 17}, Shape{3, 64}, Shape{2, 3, 100},
                             Shape{4, 1000}, Shape{2, 3, 4, 5}})
    for (const int axes : {1, shape.rank() - 1})
      for (const auto& [affine, bias] : {std::pair(true, true), std::pair(true, false), std::pair(false, false)}) {
        const TensorDesc input{shape, DType::float32, {}};
        compare("layer norm " + shape.text(), input, [&](Primitives& primitives, const OperationContext& context) {
          return make_layer_norm(primitives, input, {.axes = axes, .affine = affine, .bias = bias}, context);
        });
      }
  const auto library = make_onednn_primitives(1);
  FirstPicker picker;
  const TensorDesc input{{3, 40}, DType::float32, {}};
  const auto operation = make_layer_norm(*library, input, {}, {picker});
  Bench bench(*operation, input);
  bench.input().as<float>()[45] = garbage;
  const auto y = bench.forward();
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::isnan(y[i]) == (i / 40 == 1));
}

TEST_CASE("a layer norm on three threads gives the same outputs, and equal bits from run to run") {
  use_threads(3);
  const auto alone = make_onednn_primitives(1), several = make_onednn_primitives(3);
  FirstPicker picker;
  for (const Shape& shape : {Shape{2, 30}, Shape{50, 70}}) {
    const TensorDesc input{shape, DType::float32, {}};
    const auto one = make_layer_norm(*alone, input, {}, {picker}),
               three = make_layer_norm(*several, input, {}, {picker});
    Bench expected(*one, input), found(*three, input);
    CHECK(found.forward(3) == expected.forward());
    const auto gradients = found.backward(3), of_one = expected.backward();
    CHECK(gradients[0] == of_one[0]);
    for (const std::size_t parameter : {1, 2}) check_close("gradient", gradients[parameter], of_one[parameter], 1e-6F);
    CHECK(found.backward(3) == gradients);
  }
  use_threads(1);
}

TEST_CASE("a layer norm of whole images has a weight that files show as (C, H, W)") {
  const auto library = make_onednn_primitives(1);
  FirstPicker picker;
  const Shape shape{2, 2, 3, 5};
  PlainModel model(LayerNorm(3), shape, *library, picker);
  const Parameter& weight = model.parameters()[0];
  REQUIRE(weight.value.shape() == Shape{5, 2, 3});
  std::vector<float> file(30);
  for (std::size_t i = 0; i < file.size(); ++i) file[i] = static_cast<float>(i);
  from_file(weight, file, weight.value);
  from_file(model.parameters()[1], std::vector<float>(30, 0.0F), model.parameters()[1].value);
  Owned x({shape, DType::float32, {}}, 0);
  fill(x.tensor, 1);
  const auto y = model.forward(x.tensor).as<float>();
  PlainModel unweighted(LayerNorm(3, 1e-5F, false), shape, *library, picker);
  const auto normalized = unweighted.forward(x.tensor).as<float>();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t c = i % 5, w = i / 5 % 3, h = i / 15 % 2;
    CHECK(y[i] == normalized[i] * static_cast<float>(c * 6 + h * 3 + w));
  }
}

TEST_CASE("shapes that a layer norm does not take are refused") {
  CHECK_THROWS_AS(build_graph(LayerNorm(2), {4, 10}), InputError);
  CHECK_THROWS_AS(build_graph(LayerNorm(0), {4, 10}), InputError);
  CHECK_THROWS_AS(build_graph(LayerNorm(2), {4, 5, 6, 3}), InputError);
  CHECK_NOTHROW(build_graph(LayerNorm(2), {4, 5, 6}));
  for (const float epsilon : {-1e-5F, std::nanf("")})
    CHECK_THROWS_AS(build_graph(LayerNorm(1, epsilon), {4, 5, 6}), InputError);
}

// ---- batch normalisation --------------------------------------------------------------------------------------------

namespace {

/// A batch norm with memory of its own: outputs and scratch start as garbage.
class NormBench {
 public:
  NormBench(Primitives& primitives, const TensorDesc& input, const BatchNormSpec& spec)
      : operation_(primitives.make(spec, {&input, 1}, {picker_})),
        x_(input, 0),
        y_(operation_->plan().output, garbage),
        dy_(operation_->plan().output, 0),
        dx_(input, garbage),
        pass_(Buffer::host(operation_->plan().pass_bytes)),
        scratch_(Buffer::host(operation_->plan().scratch_bytes)),
        mean_(channels(input)),
        variance_(channels(input), 1.0F) {
    std::fill_n(scratch_.data(), scratch_.bytes(), std::byte{0xff});
    fill(x_.tensor, 1);
    fill(dy_.tensor, 2);
    OperationMemory memory{.output = y_.tensor,
                           .input_gradients = {dx_.tensor},
                           .states = {Tensor(std::span(mean_)), Tensor(std::span(variance_)),
                                      Tensor({Shape{}, DType::int64, {}}, &batches_)},
                           .pass = pass_.data(),
                           .scratch = scratch_.data()};
    for (std::size_t i = 0; i < operation_->plan().parameters.size(); ++i) {
      values_.emplace_back(operation_->plan().parameters[i], 0);
      gradients_.emplace_back(operation_->plan().parameters[i], garbage);
      fill(values_.back().tensor, 3 + i, 0.5F);
      parameters_.push_back(
          {ParameterId{static_cast<std::uint32_t>(i)}, "p", values_.back().tensor, gradients_.back().tensor, {}, {}});
    }
    for (Parameter& parameter : parameters_) memory.parameters.push_back(&parameter);
    operation_->bind(memory);
  }

  /// In rows, whatever the layout.
  void set_input(std::vector<float> values) {
    reorder(Tensor({x_.tensor.shape(), DType::float32, {}}, values.data()), x_.tensor);
  }
  [[nodiscard]] std::vector<float> input() const { return plain_copy(x_.tensor); }

  /// Of the rows; empty: there are none, and all rows count.
  std::vector<float> weights = {};
  Mode mode = Mode::training;

  std::vector<float> forward() {
    run([&](const Pass& pass) { operation_->forward({&x_.tensor, 1}, pass); });
    return plain_copy(y_.tensor);
  }
  /// Of the input, the weight and the bias.
  std::vector<std::vector<float>> backward() {
    run([&](const Pass& pass) { operation_->backward({&x_.tensor, 1}, dy_.tensor, pass); });
    std::vector<std::vector<float>> all{plain_copy(dx_.tensor)};
    for (const Owned& gradient : gradients_) all.push_back(plain_copy(gradient.tensor));
    return all;
  }
  [[nodiscard]] const std::vector<float>& running_mean() const { return mean_; }
  [[nodiscard]] const std::vector<float>& running_variance() const { return variance_; }
  [[nodiscard]] std::int64_t batches() const { return batches_; }
  [[nodiscard]] std::vector<float> weight() const { return plain_copy(values_[0].tensor); }
  [[nodiscard]] std::vector<float> output_gradient() const { return plain_copy(dy_.tensor); }
  [[nodiscard]] std::vector<float> bias() const { return plain_copy(values_[1].tensor); }
  [[nodiscard]] bool padding_is_zero() const {
    return test::padding_is_zero(y_.tensor) && test::padding_is_zero(dx_.tensor);
  }

 private:
  static std::size_t channels(const TensorDesc& input) {
    return static_cast<std::size_t>(input.shape[input.shape.rank() - 1]);
  }
  template <class Run>
  void run(Run call) {
    CpuStream stream(1);
    const Tensor of_rows{std::span(weights)};
    call(Pass{.stream = stream, .mode = mode, .weights = weights.empty() ? nullptr : &of_rows, .on_ready = {}});
  }

  FirstPicker picker_;
  std::unique_ptr<Operation> operation_;
  Owned x_, y_, dy_, dx_;
  Buffer pass_, scratch_;
  std::vector<float> mean_, variance_;
  std::int64_t batches_ = 0;
  std::deque<Owned> values_, gradients_;
  std::deque<Parameter> parameters_;
};

bool all_finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

}  // namespace

TEST_CASE("a batch norm has PyTorch's values: the biased variance normalises, the unbiased one is kept") {
  const auto plain = make_reference_primitives(), library = make_onednn_primitives(1);
  for (Primitives* primitives : {plain.get(), library.get()}) {
    NormBench norm(*primitives, {{3, 2}, DType::float32, {}}, {.epsilon = 0, .affine = false});
    norm.set_input({1, 1000, 3, 1004, 5, 1005});
    const auto y = norm.forward();
    const std::vector<float> expected{-1.2247449F, -1.3887301F, 0, 0.4629100F, 1.2247449F, 0.9258201F};
    check_close("output", y, expected, 1e-6F);
    check_close("running mean", norm.running_mean(), {0.3F, 100.3F}, 1e-6F);
    check_close("running variance", norm.running_variance(), {0.9F + 0.4F, 0.9F + 0.7F}, 1e-6F);
    norm.mode = Mode::evaluation;
    const auto means = norm.running_mean(), variances = norm.running_variance();
    const auto evaluated = norm.forward();
    for (std::size_t i = 0; i < 6; ++i)
      CHECK(evaluated[i] == Approx((norm.input()[i] - means[i % 2]) / std::sqrt(variances[i % 2])));
    CHECK(norm.running_mean() == means);
    CHECK(norm.running_variance() == variances);
    CHECK(norm.batches() == 1);
  }
}

TEST_CASE("batch norms equal the plain loops in every layout, whichever rows count") {
  const auto plain = make_reference_primitives(), library = make_onednn_primitives(1),
             three = make_onednn_primitives(3);
  use_threads(3);
  const auto compare_norms = [&](const TensorDesc& input, const BatchNormSpec& spec,
                                 const std::vector<float>& weights) {
    const std::string what = "batch norm of " + input.text();
    NormBench expected(*plain, input, spec);
    expected.weights = weights;
    const auto y = expected.forward();
    const auto gradients = expected.backward();
    for (Primitives* primitives : {library.get(), three.get()}) {
      NormBench found(*primitives, input, spec);
      found.weights = weights;
      check_close(what + " output", found.forward(), y, 1e-5F);
      check_close(what + " running mean", found.running_mean(), expected.running_mean(), 1e-6F);
      check_close(what + " running variance", found.running_variance(), expected.running_variance(), 1e-6F);
      const auto all = found.backward();
      for (std::size_t i = 0; i < all.size(); ++i) check_close(what + " gradient", all[i], gradients[i], 1e-5F);
      CHECK(found.padding_is_zero());
      CHECK(found.forward() == found.forward());
      CHECK(found.backward() == all);
    }
  };
  for (const std::vector<float>& weights :
       {std::vector<float>{}, {1, 1, 1, 1}, {0, 1, 0.5F, 0}, {1, 0, 2, 1}, {0, 0, 0, 1}, {0, 0, 0, 0}})
    for (const Activation activation : {Activation::none, Activation::relu}) {
      for (const char* layout : {"plain", "adbc16d", "adbc8d", "adbc"})
        for (const std::int64_t channels : {1, 3, 16, 17, 40})
          compare_norms(image(4, 3, 5, channels, layout), {.activation = activation}, weights);
      for (const Shape& shape : {Shape{4, 33}, Shape{4, 7, 5}})
        for (const bool affine : {true, false})
          compare_norms({shape, DType::float32, {}}, {.affine = affine, .activation = activation}, weights);
    }
  compare_norms({{700, 20}, DType::float32, {}}, {}, {});  // longer than a piece
  compare_norms(image(2, 40, 30, 16, "adbc16d"), {}, {});
  use_threads(1);
}

TEST_CASE("rows that only fill up a batch change nothing in a batch norm, and get no gradient") {
  const auto plain = make_reference_primitives(), library = make_onednn_primitives(1);
  for (Primitives* primitives : {plain.get(), library.get()}) {
    NormBench five(*primitives, image(5, 3, 3, 20), {.activation = Activation::relu}),
        padded(*primitives, image(8, 3, 3, 20), {.activation = Activation::relu});
    std::vector<float> values = padded.input();
    const std::size_t real = five.input().size();
    std::fill(values.begin() + static_cast<std::ptrdiff_t>(real), values.end(), garbage);
    padded.set_input(values);
    padded.weights = {1, 1, 1, 1, 1, 0, 0, 0};
    const auto y = padded.forward(), expected = five.forward();
    const auto gradients = padded.backward(), expected_gradients = five.backward();
    const auto rows = [&](const std::vector<float>& all) {
      return std::vector<float>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(real));
    };
    CHECK(rows(y) == expected);
    CHECK(padded.running_mean() == five.running_mean());
    CHECK(padded.running_variance() == five.running_variance());
    CHECK(rows(gradients[0]) == expected_gradients[0]);
    CHECK(gradients[1] == expected_gradients[1]);
    CHECK(gradients[2] == expected_gradients[2]);
    CHECK(std::all_of(gradients[0].begin() + static_cast<std::ptrdiff_t>(real), gradients[0].end(),
                      [](float dx) { return dx == 0; }));
  }
}

TEST_CASE("a batch norm without a row that counts uses its running values, and gives no gradients") {
  const auto plain = make_reference_primitives(), library = make_onednn_primitives(1);
  for (Primitives* primitives : {plain.get(), library.get()}) {
    NormBench norm(*primitives, image(3, 2, 2, 17), {});
    norm.forward();
    const auto mean = norm.running_mean(), variance = norm.running_variance();
    norm.mode = Mode::evaluation;
    const auto evaluated = norm.forward();
    norm.mode = Mode::training;
    norm.weights = {0, 0, 0};
    CHECK(norm.forward() == evaluated);
    CHECK(all_finite(evaluated));
    CHECK(norm.running_mean() == mean);
    CHECK(norm.running_variance() == variance);
    for (const auto& gradient : norm.backward()) CHECK(gradient == std::vector<float>(gradient.size(), 0.0F));
  }
}

TEST_CASE("a batch norm whose statistics are held trains by its running values, which do not move") {
  const auto plain = make_reference_primitives(), library = make_onednn_primitives(1);
  for (Primitives* primitives : {plain.get(), library.get()}) {
    NormBench norm(*primitives, {{3, 2}, DType::float32, {}}, {.epsilon = 0, .held = true});
    const auto trained = norm.forward();
    const auto gradients = norm.backward();
    CHECK(norm.running_mean() == std::vector<float>{0, 0});
    CHECK(norm.running_variance() == std::vector<float>{1, 1});
    CHECK(norm.batches() == 0);
    norm.mode = Mode::evaluation;
    CHECK(norm.forward() == trained);
    // With mean 0 and variance 1 the norm is a factor and an offset: dx = dy · weight, the weight's gradient is the sum
    // of x · dy, and the bias's gradient is the sum of dy.
    const auto x = norm.input();
    for (std::size_t c = 0; c < 2; ++c) {
      double of_weight = 0, of_bias = 0;
      for (std::size_t i = c; i < 6; i += 2) {
        const float dy = norm.output_gradient()[i];
        CHECK(gradients[0][i] == Approx(dy * norm.weight()[c]));
        of_weight += double{x[i]} * dy;
        of_bias += dy;
      }
      CHECK(gradients[1][c] == Approx(of_weight).margin(1e-6));
      CHECK(gradients[2][c] == Approx(of_bias).margin(1e-6));
    }
  }
}

TEST_CASE("a single value has no unbiased variance: a batch norm gives its bias, and keeps its running values") {
  const auto plain = make_reference_primitives(), library = make_onednn_primitives(1);
  for (Primitives* primitives : {plain.get(), library.get()}) {
    NormBench norm(*primitives, {{2, 9}, DType::float32, {}}, {});
    norm.weights = {1, 0};
    const auto y = norm.forward();
    CHECK(std::vector<float>(y.begin(), y.begin() + 9) == norm.bias());
    CHECK(norm.running_mean() == std::vector<float>(9, 0.0F));
    CHECK(norm.running_variance() == std::vector<float>(9, 1.0F));
    for (const auto& gradient : norm.backward()) CHECK(all_finite(gradient));
  }
}

TEST_CASE("a NaN or an infinity spoils its channel of a batch, and not the running values") {
  const auto plain = make_reference_primitives(), library = make_onednn_primitives(1);
  for (Primitives* primitives : {plain.get(), library.get()})
    for (const float bad : {garbage, std::numeric_limits<float>::infinity()})
      for (const std::size_t row : {0, 3}) {
        NormBench norm(*primitives, {{5, 20}, DType::float32, {}}, {.activation = Activation::relu}),
            sound(*primitives, {{5, 20}, DType::float32, {}}, {.activation = Activation::relu});
        auto values = norm.input();
        values[row * 20 + 7] = bad;
        norm.set_input(values);
        const auto y = norm.forward(), expected = sound.forward();
        const auto gradients = norm.backward();
        for (std::size_t i = 0; i < y.size(); ++i) {
          CHECK(std::isnan(y[i]) == (i % 20 == 7));
          CHECK(std::isnan(gradients[0][i]) == (i % 20 == 7));
          if (i % 20 != 7) CHECK(y[i] == expected[i]);
        }
        CHECK(norm.running_mean()[7] == 0);
        CHECK(norm.running_variance()[7] == 1);
        CHECK(norm.running_mean()[6] == sound.running_mean()[6]);
      }
}

TEST_CASE("a batch norm far from zero loses no digits") {
  const auto library = make_onednn_primitives(1);
  NormBench norm(*library, image(8, 20, 20, 16, "adbc16d"), {.affine = false});
  auto values = norm.input();
  const auto near = values;
  for (float& value : values) value = value * 0x1p-6F + 1024;  // 64 steps of float32 to each side
  norm.set_input(values);
  const auto y = norm.forward();
  double squares = 0;
  for (const float each : y) squares += double{each} * each / static_cast<double>(y.size());
  CHECK(squares == Approx(1).epsilon(0.2));  // epsilon is an eighth of the variance
  double mean = 0, variance = 0;
  for (std::size_t i = 5; i < values.size(); i += 16) mean += double{values[i]} / (8 * 20 * 20);
  for (std::size_t i = 5; i < values.size(); i += 16)
    variance += (values[i] - mean) * (values[i] - mean) / (8 * 20 * 20);
  for (std::size_t i = 5; i < values.size(); i += 16)
    CHECK(y[i] == Approx((values[i] - mean) / std::sqrt(variance + 1e-5)).margin(0.02));  // the mean's last bit is 6e-5
}

TEST_CASE("a ReLU becomes part of the batch norm before it, and an evaluating program equals a training one") {
  const auto library = make_onednn_primitives(1);
  FirstPicker picker;
  const Sequential model(Conv2d(20, 3), BatchNorm2d(), ReLU(), MaxPool2d(2), Flatten(), BatchNorm1d(), Dense(4));
  const Shape shape{3, 8, 8, 3};
  PlainModel training(model, shape, *library, picker);
  CHECK(std::ranges::none_of(training.program().lines(), [](const auto& line) { return line.starts_with("relu"); }));
  CHECK(training.states().size() == 6);
  Owned x({shape, DType::float32, {}}, 0);
  fill(x.tensor, 1);
  training.forward(x.tensor);
  PlainModel evaluating(build_graph(model, shape), *library, picker, 7, false, Mode::evaluation);
  for (std::size_t i = 0; i < 6; ++i) reorder(training.states()[i], evaluating.states()[i]);
  Pass pass = training.pass();
  pass.mode = Mode::evaluation;
  const auto expected = plain_copy(training.program().forward({&x.tensor, 1}, pass));
  CHECK(plain_copy(evaluating.program().forward({&x.tensor, 1}, pass)) == expected);
  CHECK(all_finite(expected));
}

TEST_CASE("a batch norm's parameters and states have PyTorch's names and first values") {
  const Graph graph =
      build_graph(Sequential(Conv2d(6, 3), BatchNorm(), Conv2d(4, 3), BatchNorm(1e-3F, 0.2F, false)), {2, 7, 7, 1});
  std::vector<std::string> names;
  for (const GraphParameter& parameter : graph.parameters) names.push_back(parameter.name);
  CHECK(names == std::vector<std::string>{"conv1.weight", "conv1.bias", "batch_norm1.weight", "batch_norm1.bias",
                                          "conv2.weight", "conv2.bias"});
  REQUIRE(graph.states.size() == 6);
  CHECK((graph.states[0].name == "batch_norm1.running_mean" && graph.states[0].initial == 0));
  CHECK((graph.states[1].name == "batch_norm1.running_var" && graph.states[1].initial == 1));
  CHECK((graph.states[2].name == "batch_norm1.num_batches_tracked" && graph.states[2].dtype == DType::int64));
  CHECK(graph.states[2].shape == Shape{});
  CHECK(graph.states[4].shape == Shape{4});
  CHECK(graph.states[4].scope == Scope::averaged);
  const Graph synchronized = build_graph(SyncBatchNorm(), {2, 7});
  CHECK(synchronized.parameters[0].name == "batch_norm1.weight");
  CHECK(synchronized.states[0].scope == Scope::replicated);
  CHECK_THROWS_AS(BatchNorm(-1), InputError);
  CHECK_THROWS_AS(SyncBatchNorm(1e-5F, -0.1F), InputError);
  CHECK_THROWS_AS(BatchNorm(1e-5F, 1.5F), InputError);
  CHECK_THROWS_AS(build_graph(BatchNorm(), {5}), InputError);
}
