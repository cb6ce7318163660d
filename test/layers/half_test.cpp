// The processor's layers in bfloat16 against the plain loops in float32, on the same numbers: equal but for the
// rounding of what they give. Every candidate in turn. On a processor without instructions for it the library computes
// them in another way, or layers do between two conversions; the numbers are to be the same.
#include "layers/bench.hpp"
#include "support/catch.hpp"
#include "support/operations.hpp"
#include "support/plain_model.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <ronda/core/number.hpp>
#include <ronda/layers/elementwise.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/layers/primitives.hpp>

using namespace ronda;
using namespace ronda::test;

namespace {

/// Half a step of bfloat16's last place, and some for float32's sums.
constexpr float rounding = 0x1.1p-8F;

float in_bfloat16(float number) { return to_float(to_half<BFloat16>(number)); }
/// -2 … 2: sums of a few hundred products are whole numbers that bfloat16 has, so that equal maxima stay equal.
float whole(float number) { return std::round(2 * number); }

using Make = std::function<std::unique_ptr<Operation>(Primitives&, const TensorDesc&, const OperationContext&)>;

TensorDesc half(const TensorDesc& desc) { return {desc.shape, DType::bfloat16, desc.layout}; }

/// @param roundings  that follow one another: of what is given, and of numbers on the way to it
void compare_halves(const std::string& what, const TensorDesc& input, const Make& make, float roundings = 1,
                    Draw draw = in_bfloat16) {
  const auto plain = make_reference_primitives(), library = make_onednn_primitives(1, DType::bfloat16);
  FirstPicker first;
  const auto reference = make(*plain, input, {first});
  Bench expected(*reference, input, true, draw);
  const auto output = expected.forward();
  const auto gradients = expected.backward();
  std::size_t candidates = 1;
  for (std::size_t wanted = 0; wanted < candidates; ++wanted) {
    ForcingPicker picker(wanted);
    const auto operation = make(*library, half(input), {picker});
    candidates = std::max(candidates, picker.most());
    const std::string name = what + " [" + operation->plan().picks + "]";
    INFO(name);
    CHECK(operation->plan().output.dtype == DType::bfloat16);
    for (const TensorDesc& parameter : operation->plan().parameters) CHECK(parameter.dtype == DType::bfloat16);
    Bench found(*operation, half(input), true, draw);
    for (int round = 0; round < 2; ++round) {
      check_close(name + " output", found.forward(), output, rounding);
      const auto all = found.backward();
      REQUIRE(all.size() == gradients.size());
      for (std::size_t i = 0; i < all.size(); ++i)
        check_close(name + (i == 0 ? " input gradient" : " parameter gradient"), all[i], gradients[i],
                    roundings * rounding);
      CHECK(found.padding_is_zero());
    }
  }
}

}  // namespace

TEST_CASE("dense in bfloat16 is near float32") {
  for (const Shape& shape : {Shape{1, 1}, Shape{5, 17}, Shape{64, 32}, Shape{3, 131}, Shape{65, 70}})
    for (const std::int64_t outputs : {1, 10, 65})
      for (const bool bias : {true, false})
        compare_halves("dense " + shape.text() + " to " + std::to_string(outputs), {shape, DType::float32, {}},
                       [&](Primitives& primitives, const TensorDesc& input, const OperationContext& context) {
                         const Activation activation = bias ? Activation::relu : Activation::none;
                         return make_dense(primitives, input, {outputs, bias, activation}, context);
                       });
}

TEST_CASE("convolution in bfloat16 is near float32") {
  struct Case {
    TensorDesc input;
    std::int64_t outputs;
    ConvolutionSpec spec;
  };
  const ConvolutionSpec square{.padding = 1}, one{.kernel = 1}, row{.kernel = {1, 7}, .padding = {0, 3}},
      grouped{.padding = 1, .groups = 16}, wide{.kernel = 5, .stride = 2, .padding = 2, .dilation = 2};
  for (const Case& c :
       {Case{image(1, 3, 3, 1), 1, one}, Case{image(5, 7, 6, 1), 17, square}, Case{image(2, 9, 8, 3), 16, row},
        Case{image(2, 8, 8, 17), 17, square}, Case{image(3, 9, 9, 32, "adbc16d"), 64, square},
        Case{image(2, 11, 12, 16), 32, wide}, Case{image(2, 5, 6, 16), 16, grouped}, Case{image(2, 5, 5, 32), 64, one}})
    for (const bool bias : {true, false}) {
      ConvolutionProblem problem{c.spec, c.input};
      problem.outputs = c.outputs;
      problem.bias = bias;
      problem.activation = bias ? Activation::relu : Activation::none;
      compare_halves("convolution " + c.input.text() + " " + text_of_windows(problem), c.input,
                     [&](Primitives& primitives, const TensorDesc& input, const OperationContext& context) {
                       ConvolutionProblem here = problem;
                       here.input = input;
                       return make_convolution(primitives, here, context);
                     });
    }
}

TEST_CASE("convolution with pooling in bfloat16 is near float32, each winner the same") {
  struct Case {
    TensorDesc input;
    std::int64_t outputs, kernel;
    PoolSpec pool;
    std::int64_t padding = 0;
  };
  for (const PoolKind kind : {PoolKind::maximum, PoolKind::average})
    for (const Case& c :
         {Case{image(2, 9, 8, 1), 32, 3, {kind, 2, 2, 0}}, Case{image(3, 8, 9, 32), 17, 3, {kind, 2, 2, 0}},
          Case{image(2, 9, 9, 3), 16, 3, {kind, 3, 2, 1}, 1}, Case{image(2, 12, 10, 16), 24, 5, {kind, 3, 2, 0}},
          Case{image(2, 9, 8, 2), 16, 3, {kind, 2, 2, 0}, 1},
          Case{image(3, 9, 8, 17, "adbc16d"), 16, 3, {kind, 3, 1, 0}}})
      for (const Activation activation : {Activation::relu, Activation::none})
        compare_halves(
            "convolution and pooling " + c.input.text(), c.input,
            [&](Primitives& primitives, const TensorDesc& input, const OperationContext& context) {
              return make_convolution(primitives,
                                      {{c.outputs, c.kernel, 1, c.padding, true, activation, c.pool}, input}, context);
            },
            2, whole);  // the gradients between the two are rounded
}

TEST_CASE("pooling, functions and copies in bfloat16 are near float32") {
  for (const char* layout : {"plain", "adbc16d", "adbc8d", "adbc"})
    for (const std::int64_t channels : {1, 3, 17, 32}) {
      const TensorDesc input = image(2, 7, 6, channels, layout);
      for (const PoolKind kind : {PoolKind::maximum, PoolKind::average})
        for (const PoolSpec& spec : {PoolSpec{kind, 2, 2, 0}, PoolSpec{kind, 3, 2, 1}, PoolSpec{kind, {7, 6}, 1, 0}})
          compare_halves("pooling " + input.text(), input,
                         [&](Primitives& primitives, const TensorDesc& here, const OperationContext& context) {
                           return make_pool(primitives, here, spec, context);
                         });
      for (const ElementwiseFunction function : every_function)
        if (input.padded_count() == input.count() || elementwise::keeps_zero(function))
          compare_halves(
              kind_of(ElementwiseSpec{function}), input,
              [&](Primitives& primitives, const TensorDesc& here, const OperationContext& context) {
                return make_elementwise(primitives, function, here, context);
              },
              3);  // 1 - y² of tanh has twice the rounding of y
      compare_halves(
          "reorder " + input.text(), input,
          [&](Primitives& primitives, const TensorDesc& here, const OperationContext& context) {
            return make_reorder(primitives, here, {here.shape, here.dtype, Layout::parse("adbc16d")}, context);
          });
    }
}

TEST_CASE("norms in bfloat16 are near float32, with statistics in float32") {
  for (const Shape& shape : {Shape{5, 3}, Shape{7, 17}, Shape{3, 64}, Shape{4, 1000}})
    compare_halves("layer norm " + shape.text(), {shape, DType::float32, {}},
                   [](Primitives& primitives, const TensorDesc& input, const OperationContext& context) {
                     return primitives.make(LayerNormSpec{}, {&input, 1}, context);
                   });
  const auto exact = make_reference_primitives(), library = make_onednn_primitives(1, DType::bfloat16);
  FirstPicker picker;
  const auto outputs = [&](Primitives& primitives, DType dtype) {
    PlainModel model(Sequential(BatchNorm2d(), ReLU()), {6, 5, 4, 17}, primitives, picker);
    Owned x({Shape{6, 5, 4, 17}, DType::float32, {}}, 0), dy({model.output().shape, dtype, {}}, 0);
    fill(x.tensor, 1, 1, in_bfloat16);
    fill(dy.tensor, 2, 1, in_bfloat16);
    const Tensor y = model.forward(x.tensor);
    std::vector<std::vector<float>> all{plain_copy(y)};
    model.backward(dy.tensor);
    for (const Parameter& parameter : model.parameters()) all.push_back(plain_copy(parameter.gradient));
    return all;
  };
  const auto expected = outputs(*exact, DType::float32), found = outputs(*library, DType::bfloat16);
  for (std::size_t i = 0; i < expected.size(); ++i) check_close("batch norm", found[i], expected[i], 2 * rounding);
}

TEST_CASE("an attention in bfloat16 is near float32, in which it computes") {
  for (const Shape& packed : {Shape{1, 1, 3}, Shape{2, 7, 30}, Shape{3, 33, 96}})
    for (const bool causal : {false, true})
      compare_halves("attention of " + packed.text(), {packed, DType::float32, {}},
                     [&](Primitives& primitives, const TensorDesc& input, const OperationContext& context) {
                       return primitives.make(AttentionSpec{.heads = 1, .causal = causal}, {&input, 1}, context);
                     });
}

TEST_CASE("a transformer's block in bfloat16 is near float32, forward and backward") {
  const auto exact = make_reference_primitives(), library = make_onednn_primitives(1, DType::bfloat16);
  FirstPicker picker;
  const auto run = [&](Primitives& primitives, DType dtype) {
    PlainModel model(
        Sequential(PositionalEmbedding(9), Residual(Sequential(LayerNorm(), MultiHeadAttention(2, {.causal = true}))),
                   LayerNorm(), Dense(5)),
        {3, 7, 16}, primitives, picker);
    Owned x({Shape{3, 7, 16}, DType::float32, {}}, 0), dy({model.output().shape, dtype, {}}, 0);
    fill(x.tensor, 1, 1, in_bfloat16);
    fill(dy.tensor, 2, 1, in_bfloat16);
    std::vector<std::vector<float>> all{plain_copy(model.forward(x.tensor))};
    model.backward(dy.tensor);
    for (const Parameter& parameter : model.parameters()) all.push_back(plain_copy(parameter.gradient));
    return all;
  };
  const auto expected = run(*exact, DType::float32), found = run(*library, DType::bfloat16);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    check_close("block", found[i], expected[i], 0x1p-4F);  // many roundings
}

TEST_CASE("NaN stays NaN in bfloat16, and where it is") {
  const auto plain = make_reference_primitives(), library = make_onednn_primitives(1, DType::bfloat16);
  const PoolSpec pool{PoolKind::maximum, 2, 2, 0};
  const std::vector<Make> makes{
      [&](Primitives& p, const TensorDesc& x, const OperationContext& c) {
        return make_convolution(p, {{16, 3, 1, 1, true, Activation::relu, pool}, x}, c);
      },
      [&](Primitives& p, const TensorDesc& x, const OperationContext& c) {
        return make_convolution(p, {{16, 3, 1, 1, true, Activation::relu, {}}, x}, c);
      },
      [&](Primitives& p, const TensorDesc& x, const OperationContext& c) { return make_pool(p, x, pool, c); },
      [&](Primitives& p, const TensorDesc& x, const OperationContext& c) { return make_relu(p, x, c); },
      [&](Primitives& p, const TensorDesc& x, const OperationContext& c) {
        return make_dense(p, x, {5, true, Activation::relu}, c);
      }};
  for (const std::int64_t channels : {2, 16})
    for (std::size_t m = 0; m < makes.size(); ++m)
      for (std::size_t wanted = 0; wanted < 3; ++wanted) {
        const TensorDesc input = image(3, 8, 6, channels);
        FirstPicker first;
        ForcingPicker forcing(wanted);
        const auto reference = makes[m](*plain, input, {first}), operation = makes[m](*library, half(input), {forcing});
        Bench expected(*reference, input), found(*operation, half(input));
        const auto place = static_cast<std::size_t>(input.count() / 2);
        expected.input().as<float>()[place] = std::numeric_limits<float>::quiet_NaN();
        found.input().as<BFloat16>()[place] = as_number<BFloat16>(std::numeric_limits<float>::quiet_NaN());
        const auto a = expected.forward(), b = found.forward();
        INFO(m << " " << channels << " [" << operation->plan().picks << "]");
        REQUIRE(a.size() == b.size());
        bool alike = true;
        for (std::size_t i = 0; i < a.size(); ++i) alike = alike && std::isnan(a[i]) == std::isnan(b[i]);
        CHECK(alike);
        CHECK(std::ranges::any_of(b, [](float x) { return std::isnan(x); }));
      }
}

TEST_CASE("a model of layers that have loops for bfloat16 and layers that have none is near float32") {
  const auto exact = make_reference_primitives(), library = make_onednn_primitives(1, DType::bfloat16);
  FirstPicker picker;
  const auto run = [&](Primitives& primitives) {
    PlainModel model(Sequential(Concat(Conv2d(6, 3, 1, 1), Conv2d(3, 1)), ReLU(), Residual(Conv2d(9, 3, 1, 1)), GELU(),
                                Flatten(), Dense(5)),
                     {3, 6, 5, 2}, primitives, picker);
    Owned x({Shape{3, 6, 5, 2}, DType::float32, {}}, 0);
    fill(x.tensor, 1, 1, in_bfloat16);
    return plain_copy(model.forward(x.tensor));
  };
  check_close("outputs", run(*library), run(*exact), 0x1p-5F);  // seven operations, each of which rounds
}
