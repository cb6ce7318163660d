// Layer normalisation: the processor's loops against the plain ones, and those against the formula.
#include "layers/bench.hpp"
#include "support/catch.hpp"
#include "support/plain_model.hpp"

#include <cmath>
#include <string>
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
}
