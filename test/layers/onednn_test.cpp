// Every operation of oneDNN against the plain loops: odd shapes, every candidate in turn, memory full of garbage.
#include "layers/bench.hpp"
#include "support/catch.hpp"
#include "support/operations.hpp"
#include "support/plain_model.hpp"
#include "support/sanitizer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/random.hpp>
#include <ronda/layers/elementwise.hpp>
#include <ronda/layers/onednn/panels.hpp>
#include <ronda/layers/onednn/processor.hpp>
#include <ronda/layers/primitives.hpp>

using namespace ronda;
using namespace ronda::test;

TEST_CASE("dense equals the plain loops") {
  for (const Shape& shape : {Shape{1, 1}, Shape{5, 17}, Shape{64, 32}, Shape{3, 130}})
    for (const std::int64_t outputs : {1, 3, 10, 64})
      for (const bool bias : {true, false})
        for (const Activation activation : {Activation::none, Activation::relu}) {
          const TensorDesc input{shape, DType::float32, {}};
          compare("dense " + shape.text() + " to " + std::to_string(outputs), input,
                  [&](Primitives& primitives, const OperationContext& context) {
                    return make_dense(primitives, input, {outputs, bias, activation}, context);
                  });
        }
}

TEST_CASE("dense equals the plain loops where panels, groups of samples and rows of tiles are not full") {
  for (const Shape& shape : {Shape{7, 131}, Shape{64, 64}, Shape{65, 70}, Shape{130, 68}})
    for (const std::int64_t outputs : {64, 65, 130}) {
      const TensorDesc input{shape, DType::float32, {}};
      compare("dense " + shape.text() + " to " + std::to_string(outputs), input,
              [&](Primitives& primitives, const OperationContext& context) {
                return make_dense(primitives, input, {outputs, true, Activation::relu}, context);
              });
    }
}

TEST_CASE("convolution equals the plain loops") {
  struct Case {
    TensorDesc input;
    std::int64_t outputs, kernel, stride, padding;
  };
  for (const Case& c :
       {Case{image(1, 1, 1, 1), 1, 1, 1, 0}, Case{image(5, 1, 1, 17), 3, 1, 1, 0}, Case{image(5, 7, 6, 1), 17, 3, 1, 0},
        Case{image(2, 9, 8, 3), 16, 3, 2, 1}, Case{image(1, 8, 8, 17), 17, 3, 1, 1},
        Case{image(2, 6, 7, 32), 32, 3, 1, 0}, Case{image(2, 9, 9, 3), 32, 5, 2, 2},
        Case{image(2, 5, 5, 32), 64, 1, 1, 0}, Case{image(3, 13, 13, 32, "adbc16d"), 64, 3, 1, 0},
        Case{image(2, 6, 6, 17, "adbc16d"), 5, 3, 1, 1}, Case{image(2, 5, 5, 8, "adbc8d"), 16, 3, 1, 1},
        Case{image(2, 5, 6, 4, "adbc"), 16, 3, 1, 1}})
    for (const bool bias : {true, false})
      for (const Activation activation : {Activation::none, Activation::relu}) {
        if (sanitized && bias != (activation == Activation::none)) continue;
        compare("convolution " + c.input.text() + " to " + std::to_string(c.outputs) + " kernel " +
                    std::to_string(c.kernel),
                c.input, [&](Primitives& primitives, const OperationContext& context) {
                  return make_convolution(
                      primitives, {{c.outputs, c.kernel, c.stride, c.padding, bias, activation, {}}, c.input}, context);
                });
      }
}

TEST_CASE("convolutions of points with strides, of few channels, equal the plain loops") {
  for (const std::int64_t channels : {1, 2, 3, 5, 7, 9, 15, 16})
    for (const Shape& size : {Shape{8, 8}, Shape{8, 9}, Shape{32, 32}}) {
      const TensorDesc input = image(4, size[0], size[1], channels);
      const ConvolutionSpec spec{.outputs = 16, .kernel = 1, .stride = {2, size[1] == 9 ? 1 : 2}};
      compare("points of " + input.text(), input, [&](Primitives& primitives, const OperationContext& context) {
        return make_convolution(primitives, {spec, input}, context);
      });
    }
}

TEST_CASE("convolutions of unequal sides, with dilation, groups and uneven padding equal the plain loops") {
  const ConvolutionSpec row{.kernel = {1, 7}, .padding = {0, 3}}, column{.kernel = {7, 1}, .stride = {2, 1}},
      dilated{.kernel = {3, 2}, .stride = {1, 3}, .padding = {2, 1}, .dilation = {2, 3}},
      wide{.padding = 2, .dilation = 2}, even{.kernel = {2, 4}, .padding = {0, 1}, .trailing = 1};
  const auto groups = [](ConvolutionSpec spec, std::int64_t count) {
    spec.groups = count;
    return spec;
  };
  const ConvolutionSpec square{.padding = 1};
  struct Case {
    TensorDesc input;
    std::int64_t outputs;
    ConvolutionSpec spec;
  };
  for (const Case& c :
       {Case{image(2, 5, 9, 3), 16, row}, Case{image(3, 6, 8, 32, "adbc16d"), 32, row},
        Case{image(2, 9, 5, 17), 5, column}, Case{image(2, 8, 9, 16), 32, dilated}, Case{image(1, 7, 8, 3), 4, dilated},
        Case{image(2, 9, 9, 32), 32, wide}, Case{image(2, 5, 6, 16), 16, even}, Case{image(2, 5, 6, 3), 17, even},
        Case{image(3, 7, 6, 32), 32, groups(square, 32)}, Case{image(2, 7, 6, 17), 17, groups(square, 17)},
        Case{image(2, 7, 6, 8, "adbc8d"), 16, groups(square, 8)}, Case{image(2, 7, 6, 6), 4, groups(square, 2)},
        Case{image(2, 7, 6, 64, "adbc16d"), 32, groups(square, 2)}, Case{image(2, 8, 9, 32), 64, groups(dilated, 4)},
        Case{image(2, 5, 6, 16), 16, groups(even, 16)}})
    for (const bool pooled : {false, true}) {  // pooled without bias and ReLU: all combinations would take long
      ConvolutionProblem problem{c.spec, c.input};
      problem.outputs = c.outputs;
      problem.bias = !pooled;
      problem.activation = pooled ? Activation::none : Activation::relu;
      if (pooled) problem.pool = PoolSpec{PoolKind::maximum, {2, 1}, {2, 1}, 0};
      compare("convolution " + c.input.text() + " to " + std::to_string(c.outputs) + " " + text_of_windows(problem),
              c.input, [&](Primitives& primitives, const OperationContext& context) {
                return make_convolution(primitives, problem, context);
              });
    }
}

namespace {

bool has_avx512() {
  if (onednn::has_avx512()) return true;
  WARN("this processor has no AVX-512: nothing to see");
  return false;
}

/// What panels and tiles take.
bool has_vectors() {
  if (onednn::has_avx512() || onednn::has_avx2()) return true;
  WARN("this processor has neither AVX-512 nor AVX2: nothing to see");
  return false;
}

}  // namespace

TEST_CASE("a convolution of few channels is fused with its pooling too where its sides are unequal") {
  for (const ConvolutionSpec& spec :
       {ConvolutionSpec{.outputs = 16, .kernel = {1, 5}, .stride = {2, 1}, .padding = {0, 2}},
        ConvolutionSpec{.outputs = 20, .kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 0}}}) {
    ConvolutionProblem problem{spec, image(3, 9, 10, 2)};
    problem.activation = Activation::relu;
    problem.pool = PoolSpec{PoolKind::maximum, {1, 2}, {2, 1}, 0};
    const auto make = [&](Primitives& primitives, const OperationContext& context) {
      return make_convolution(primitives, problem, context);
    };
    compare("fused " + text_of_windows(problem), problem.input, make);
    const auto library = make_onednn_primitives(1);
    ForcingPicker second(1);
    CHECK_THAT(make(*library, {second})->plan().picks, Contains("forward fused"));
  }
}

TEST_CASE("convolution with pooling equals the plain loops") {
  struct Case {
    TensorDesc input;
    std::int64_t outputs, kernel;
    PoolSpec pool;
    std::int64_t stride = 1, padding = 0;
  };
  for (const PoolKind kind : {PoolKind::maximum, PoolKind::average})
    for (const Case& c : {Case{image(2, 9, 8, 1), 32, 3, {kind, 2, 2, 0}},
                          Case{image(3, 8, 9, 32), 17, 3, {kind, 2, 2, 0}},
                          Case{image(1, 9, 9, 3), 16, 3, {kind, 3, 2, 1}},
                          Case{image(2, 7, 7, 3), 3, 3, {kind, 3, 1, 0}},
                          Case{image(2, 20, 20, 2), 4, 3, {kind, 18, 1, 0}},
                          Case{image(2, 9, 9, 8, "adbc8d"), 8, 3, {kind, 2, 3, 0}},
                          Case{image(9, 9, 8, 32), 20, 3, {kind, 2, 2, 0}},
                          Case{image(3, 9, 8, 17, "adbc16d"), 16, 3, {kind, 3, 2, 1}},
                          Case{image(2, 12, 10, 16), 24, 5, {kind, 2, 2, 0}},
                          Case{image(2, 10, 9, 3), 40, 5, {kind, 3, 2, 0}},
                          Case{image(2, 9, 8, 32), 16, 1, {kind, 2, 2, 0}},
                          Case{image(3, 11, 10, 2), 20, 3, {kind, 2, 2, 0}, 2, 1},
                          Case{image(2, 9, 8, 1), 16, 5, {kind, 3, 1, 0}, 1, 2},
                          Case{image(2, 8, 7, 8), 32, 3, {kind, 2, 2, 0}, 1, 1},
                          Case{image(3, 11, 7, 1), 17, 3, {kind, 2, 2, 0}, 1, 1},
                          Case{image(2, 7, 8, 1), 16, 3, {kind, 2, 1, 0}},
                          Case{image(1, 3, 3, 1), 16, 3, {kind, 1, 1, 0}},
                          Case{image(2, 9, 8, 1), 32, 3, {kind, {2, 3}, {3, 1}, 0}},
                          Case{image(2, 9, 11, 32), 32, 3, {kind, {1, 2}, {2, 3}, {0, 1}}},
                          Case{image(2, 6, 9, 16), 16, 3, {kind, {4, 7}, 1, 0}},
                          Case{image(2, 9, 8, 48), 80, 3, {kind, 2, 2, 0}},
                          Case{image(2, 16, 15, 16), 32, 3, {kind, 2, 2, 0}}})
      for (const bool bias : {true, false}) {  // a layer without has no ReLU here: all four would take long
        if (sanitized && bias != (kind == PoolKind::maximum)) continue;
        if (sanitized && kind == PoolKind::average && c.input.shape[3] > 17)
          continue;  // the same paths, with more to add
        const Activation activation = bias ? Activation::relu : Activation::none;
        compare("convolution and pooling " + c.input.text() + " to " + std::to_string(c.outputs), c.input,
                [&](Primitives& primitives, const OperationContext& context) {
                  return make_convolution(
                      primitives, {{c.outputs, c.kernel, c.stride, c.padding, bias, activation, c.pool}, c.input},
                      context);
                });
      }
}

TEST_CASE("pooling equals the plain loops") {
  for (const PoolKind kind : {PoolKind::maximum, PoolKind::average})
    for (const char* layout : {"plain", "adbc16d", "adbc8d", "adbc"})
      for (const std::int64_t channels : {1, 3, 8, 17, 32, 56})
        for (const PoolSpec& spec :
             {PoolSpec{kind, 1, 1, 0}, PoolSpec{kind, 2, 2, 0}, PoolSpec{kind, 3, 2, 1}, PoolSpec{kind, 3, 1, 0},
              PoolSpec{kind, 2, 3, 0}, PoolSpec{kind, {1, 3}, {2, 1}, {0, 1}}, PoolSpec{kind, {7, 6}, 1, 0}}) {
          const TensorDesc input = image(2, 7, 6, channels, layout);
          compare("pooling " + input.text(), input, [&](Primitives& primitives, const OperationContext& context) {
            return make_pool(primitives, input, spec, context);
          });
        }
}

TEST_CASE("functions of each element and copies equal the plain loops") {
  const auto compare_functions = [](const TensorDesc& input) {
    for (const ElementwiseFunction function : every_function) {
      if (input.padded_count() != input.count() && !elementwise::keeps_zero(function)) continue;
      compare(kind_of(ElementwiseSpec{function}), input, [&](Primitives& primitives, const OperationContext& context) {
        return make_elementwise(primitives, function, input, context);
      });
    }
  };
  compare_functions({Shape{5, 17}, DType::float32, {}});
  for (const char* from : {"plain", "adbc16d", "adbc8d", "adbc"})
    for (const std::int64_t channels : {1, 3, 17, 32}) {
      const TensorDesc input = image(3, 4, 5, channels, from);
      compare_functions(input);
      for (const char* to : {"plain", "adbc16d", "adbc8d", "adbc"})
        compare("reorder", input, [&](Primitives& primitives, const OperationContext& context) {
          return make_reorder(primitives, input, image(3, 4, 5, channels, to), context);
        });
    }
}

TEST_CASE("GELU is exact to 3e-7 of the distribution, and of an element depends neither on its place nor on threads") {
  constexpr std::int64_t count = 1003;  // of vectors and blocks, and some more
  FirstPicker picker;
  const auto run = [&](std::int64_t elements, std::int64_t from, int threads) {
    const TensorDesc input{Shape{elements}, DType::float32, {}};
    const auto library = make_onednn_primitives(threads);
    const auto operation = make_elementwise(*library, ElementwiseFunction::gelu, input, {picker});
    Bench bench(*operation, input, true, [](float) { return 0.7F; });
    for (std::int64_t i = 0; i < elements; ++i) {
      const auto x = static_cast<float>(from + i - 500) / 50;
      bench.input().pointer<float>()[i] = std::abs(x) > 9.9F ? x * 1e19F : x;
    }
    auto values = bench.forward();
    const auto gradients = bench.backward();
    values.insert(values.end(), gradients[0].begin(), gradients[0].end());
    return values;
  };
  const auto all = run(count, 0, 1);
  for (std::int64_t i = 10; i < count - 13; ++i) {
    const double x = static_cast<double>(i - 500) / 50;
    // The distribution within 3e-7, and x as a float.
    CHECK(std::abs(all[static_cast<std::size_t>(i)] - x * 0.5 * std::erfc(-x / std::sqrt(2.0))) <=
          4e-7 * std::max(1.0, std::abs(x)));
  }
  use_threads(3);
  CHECK(run(count, 0, 3) == all);
  use_threads(1);
  for (const std::int64_t i : {0, 1, 255, 256, 511, 700, 991, 1002}) {
    const auto one = run(1, i, 1);
    CHECK(one[0] == all[static_cast<std::size_t>(i)]);
    CHECK(one[1] == all[static_cast<std::size_t>(count + i)]);
  }
}

TEST_CASE("a function that is not 0 at 0 leaves the padding of a convolution's channels at 0") {
  const auto library = make_onednn_primitives(1);
  FirstPicker picker;
  PlainModel model(Sequential(Conv2d(17, 3), Sigmoid(), Conv2d(5, 3)), {2, 7, 6, 3}, *library, picker);
  Owned x(image(2, 7, 6, 3), 0), dy(model.output(), 0);
  fill(x.tensor, 1);
  fill(dy.tensor, 2);
  model.forward(x.tensor);
  model.backward(dy.tensor);
  for (const Parameter& parameter : model.parameters()) CHECK(padding_is_zero(parameter.gradient));
}

TEST_CASE("sums of two and three equal the plain loops, apart, in place and of one value twice") {
  const auto plain = make_reference_primitives(), library = make_onednn_primitives(2);
  FirstPicker picker;
  const TensorDesc desc{Shape{7, 33}, DType::float32, {}};
  Owned a(desc, 0), b(desc, 0), c(desc, 0);
  fill(a.tensor, 1);
  fill(b.tensor, 2);
  fill(c.tensor, 3);
  a.tensor.as<float>()[4] = garbage;
  CpuStream stream(2);
  const Pass pass{.stream = stream, .on_ready = {}};
  const auto bits = [](const Tensor& tensor) {
    std::vector<std::uint32_t> all;
    for (const float x : tensor.as<float>()) all.push_back(std::isnan(x) ? 1U : std::bit_cast<std::uint32_t>(x));
    return all;
  };
  for (const Activation activation : {Activation::none, Activation::relu})
    for (const std::vector<Tensor>& terms : {std::vector{a.tensor, b.tensor}, std::vector{b.tensor, b.tensor},
                                             std::vector{a.tensor, b.tensor, c.tensor}}) {
      const std::vector<TensorDesc> descs(terms.size(), desc);
      const auto run = [&](Primitives& primitives, bool in_place) {
        const auto add = primitives.make(AddSpec{activation}, descs, {picker});
        Owned output(desc, garbage);
        std::vector<Tensor> given = terms;
        if (in_place) {
          reorder(terms[0], output.tensor);
          given[0] = output.tensor;
          if (given[1].data() == terms[0].data()) given[1] = output.tensor;
        }
        OperationMemory memory{.output = output.tensor};
        memory.input_gradients.resize(terms.size());
        add->bind(memory);
        add->forward(given, pass);
        return bits(output.tensor);
      };
      const auto expected = run(*plain, false);
      CHECK(run(*plain, true) == expected);
      CHECK(run(*library, false) == expected);
      CHECK(run(*library, true) == expected);
    }
}

TEST_CASE("dense reads an image in the order of its bytes") {
  for (const char* layout : {"plain", "adbc16d", "adbc"}) {
    const TensorDesc input = image(4, 3, 2, 32, layout);
    compare("dense", input, [&](Primitives& primitives, const OperationContext& context) {
      return make_dense(primitives, input, {10, true, Activation::relu}, context);
    });
  }
}

TEST_CASE("what nobody needs is not computed") {
  const auto library = make_onednn_primitives(1);
  FirstPicker picker;
  const TensorDesc pixels = image(3, 9, 9, 3);
  const std::vector<PoolSpec> pools{{PoolKind::maximum, 2, 2, 0}, {PoolKind::average, 2, 2, 0}};
  for (const PoolSpec& pool : pools) {
    const ConvolutionProblem spec{{16, 3, 1, 1, true, Activation::relu, pool}, pixels};
    const auto training = make_convolution(*library, spec, {picker});
    const auto first_layer = make_convolution(*library, spec, {picker, Mode::training, false});
    const auto evaluation = make_convolution(*library, spec, {picker, Mode::evaluation, false});
    Bench full(*training, pixels), partial(*first_layer, pixels, false), forward_only(*evaluation, pixels, false);
    const auto output = full.forward();
    CHECK(partial.forward() == output);
    CHECK(forward_only.forward() == output);
    CHECK(evaluation->plan().pass_bytes == 0);
    const auto all = full.backward(), without = partial.backward();
    CHECK(std::isnan(without[0][0]));
    CHECK(std::equal(all.begin() + 1, all.end(), without.begin() + 1));
  }
}

namespace {

/// Two passes, the second on what the first left behind, give these outputs and gradients.
/// @param first  of the gradients that is there: 1 without the input's
void check_rounds(Bench& bench, const std::vector<float>& output, const std::vector<std::vector<float>>& gradients,
                  int threads, std::size_t first = 0) {
  for (int round = 0; round < 2; ++round) {
    check_close("output", bench.forward(threads), output, 1e-5F);
    const auto found = bench.backward(threads);
    for (std::size_t i = first; i < found.size(); ++i) check_close("gradient", found[i], gradients[i], 1e-5F);
  }
}

float mostly_zero(float x) { return x > 0.3F ? x : 0; }

}  // namespace

TEST_CASE("two threads give equal bits from run to run") {
  use_threads(2);
  const auto library = make_onednn_primitives(2);
  const auto plain = make_reference_primitives();
  const TensorDesc pixels = image(5, 12, 12, 8);
  const ConvolutionProblem spec{{32, 3, 1, 1, true, Activation::relu, PoolSpec{}}, pixels};
  for (const std::size_t wanted : {0, 4}) {  // the library's way and ours
    ForcingPicker picker(wanted);
    const auto reference = make_convolution(*plain, spec, {picker}),
               operation = make_convolution(*library, spec, {picker}),
               again = make_convolution(*library, spec, {picker});
    Bench expected(*reference, pixels), found(*operation, pixels), second(*again, pixels);
    check_close("output", found.forward(2), expected.forward(), 1e-5F);
    const auto gradients = found.backward(2), plain_gradients = expected.backward();
    for (std::size_t i = 0; i < gradients.size(); ++i) check_close("gradient", gradients[i], plain_gradients[i], 1e-5F);
    for (int round = 0; round < 3; ++round) {
      CHECK(second.forward(2) == found.forward(2));
      CHECK(second.backward(2) == gradients);
    }
  }
  use_threads(1);
}

TEST_CASE("a dense layer's bits do not depend on its threads where its weights lie in panels", "[vectors]") {
  if (!has_vectors()) return;
  use_threads(3);
  const auto alone = make_onednn_primitives(1), several = make_onednn_primitives(3);
  ForcingPicker picker(2);
  const TensorDesc input{Shape{70, 133}, DType::float32, {}};
  for (const Draw draw : {Draw(nullptr), Draw(mostly_zero)}) {
    const auto one = make_dense(*alone, input, {200, false, Activation::relu}, {picker}),
               three = make_dense(*several, input, {200, false, Activation::relu}, {picker});
    REQUIRE(three->plan().picks == "weights in panels");
    Bench expected(*one, input, true, draw), found(*three, input, true, draw);
    CHECK(found.forward(3) == expected.forward());
    CHECK(found.backward(3) == expected.backward());
  }
  use_threads(1);
}

namespace {

/// Mostly 0, as pictures on a black ground are, and what a ReLU lets through.

}  // namespace

TEST_CASE("a dense layer whose inputs are mostly 0 equals the plain loops where its weights lie in panels",
          "[vectors]") {
  if (!has_vectors()) return;
  struct Case {
    std::int64_t batch, inputs, outputs;
  };
  const auto plain = make_reference_primitives(), library = make_onednn_primitives(1);
  FirstPicker first;
  ForcingPicker picker(2);
  for (const Case& c : {Case{70, 133, 200}, Case{1, 1, 1}, Case{33, 64, 64}, Case{129, 15, 65}, Case{64, 784, 128}}) {
    if (sanitized && c.inputs > 200) continue;
    const TensorDesc input{Shape{c.batch, c.inputs}, DType::float32, {}};
    const DenseSpec spec{c.outputs, true, Activation::relu};
    const auto reference = make_dense(*plain, input, spec, {first}),
               operation = make_dense(*library, input, spec, {picker});
    REQUIRE(operation->plan().picks == "weights in panels");
    INFO(input.text() << " to " << c.outputs);
    Bench expected(*reference, input, true, mostly_zero), found(*operation, input, true, mostly_zero);
    const auto output = expected.forward();
    const auto plain_gradients = expected.backward();
    for (int round = 0; round < 2; ++round) {  // the second on what the first left behind
      check_close("output", found.forward(), output, 1e-5F);
      const auto gradients = found.backward();
      for (std::size_t i = 0; i < gradients.size(); ++i)
        check_close("gradient", gradients[i], plain_gradients[i], 1e-5F);
      CHECK(found.padding_is_zero());
    }
  }
}

TEST_CASE("a sample's bits do not depend on how many other inputs of its batch are 0, and its NaN is no 0",
          "[vectors]") {
  if (!has_vectors()) return;
  const auto library = make_onednn_primitives(1);
  ForcingPicker picker(2);
  const TensorDesc input{Shape{9, 150}, DType::float32, {}};
  const auto operation = make_dense(*library, input, {70, true, Activation::none}, {picker});
  REQUIRE(operation->plan().picks == "weights in panels");
  Bench bench(*operation, input);
  const auto among_full = bench.forward();
  const std::span<float> x = bench.input().as<float>();
  std::fill(x.begin() + 150, x.end(), 0.0F);
  const auto among_empty = bench.forward();
  CHECK(std::equal(among_full.begin(), among_full.begin() + 70, among_empty.begin()));
  CHECK(among_full != among_empty);
  x[300 + 149] = garbage;
  const auto third = bench.forward();
  CHECK(std::all_of(third.begin() + 140, third.begin() + 210, [](float y) { return std::isnan(y); }));
}

namespace {

/// The candidate of this name, wherever it can run. All that can are run before, as a timing would.
class NamePicker : public Picker {
 public:
  explicit NamePicker(std::string_view name) : name_(name) {}
  std::size_t pick(std::string_view question, std::span<const Candidate> candidates) override {
    for (const Candidate& candidate : candidates)
      if (candidate.run) candidate.run();
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].name == name_ && candidates[i].run) return i;
    return FirstPicker().pick(question, candidates);
  }

 private:
  std::string_view name_;
};
/// Takes a convolution's tiles wherever it can.
class TilesPicker final : public NamePicker {
 public:
  TilesPicker() : NamePicker("winograd tiles") {}
};

/// In every direction.
bool is_of_tiles(const Operation& operation) {
  return operation.plan().picks ==
         "forward winograd tiles, backward weights winograd tiles, backward data winograd tiles";
}

}  // namespace

TEST_CASE("convolutions by tiles equal the plain loops where tiles, panels, chunks and blocks are not full",
          "[vectors]") {
  if (!has_vectors()) return;
  struct Case {
    std::int64_t samples, height, width, inputs, outputs;
    HeightWidth padding;
    const char* layout;
  };
  const auto plain = make_reference_primitives();
  FirstPicker first;
  TilesPicker picker;
  for (const Case& c : {Case{1, 3, 3, 16, 16, 0, "adbc16d"}, Case{1, 1, 1, 16, 32, 1, "adbc16d"},
                        Case{2, 6, 11, 32, 48, {1, 0}, "adbc16d"}, Case{3, 13, 13, 32, 64, 0, "adbc16d"},
                        Case{2, 5, 4, 48, 80, {0, 2}, "plain"}, Case{3, 4, 4, 128, 192, 1, "adbc16d"},
                        Case{4, 21, 18, 80, 16, 1, "adbc16d"}, Case{2, 32, 32, 16, 16, 1, "plain"},
                        Case{2, 6, 11, 32, 48, {1, 0}, "adbc8d"}, Case{3, 4, 4, 128, 192, 1, "adbc8d"}})
    for (const int threads : {1, 3}) {
      if (onednn::has_avx512() && c.layout == std::string("adbc8d")) continue;  // channels lie in sixteens there
      if (sanitized && c.samples > 2) continue;  // the plain loops would take most of all tests' time
      use_threads(threads);
      const auto library = make_onednn_primitives(threads);
      const TensorDesc input = image(c.samples, c.height, c.width, c.inputs, c.layout);
      const ConvolutionProblem spec{
          {c.outputs, 3, 1, c.padding, threads == 1, threads == 1 ? Activation::relu : Activation::none, {}}, input};
      const auto reference = make_convolution(*plain, spec, {first}),
                 operation = make_convolution(*library, spec, {picker});
      INFO(input.text() << " to " << c.outputs << " on " << threads << " threads");
      REQUIRE(is_of_tiles(*operation));
      Bench expected(*reference, input), found(*operation, input);
      const auto output = expected.forward();
      const auto plain_gradients = expected.backward();
      check_rounds(found, output, plain_gradients, threads);
    }
  use_threads(1);
}

TEST_CASE("convolutions by tiles with their pooling equal the plain loops", "[vectors]") {
  if (!has_vectors()) return;
  struct Case {
    std::int64_t samples, height, width, inputs, outputs;
    HeightWidth padding;
  };
  const auto plain = make_reference_primitives(), library = make_onednn_primitives(1);
  FirstPicker first;
  TilesPicker picker;
  for (const Case& c : {Case{3, 13, 13, 32, 64, 0}, Case{1, 4, 4, 16, 16, 0}, Case{2, 6, 11, 32, 48, {1, 0}},
                        Case{2, 9, 7, 16, 80, 1}, Case{1, 2, 8, 16, 32, 1}})
    for (const bool bias : {true, false}) {
      const TensorDesc input =
          image(c.samples, c.height, c.width, c.inputs, bias || onednn::has_avx512() ? "adbc16d" : "adbc8d");
      const ConvolutionProblem spec{{c.outputs, 3, 1, c.padding, bias, bias ? Activation::relu : Activation::none,
                                     PoolSpec{PoolKind::maximum, 2, 2, 0}},
                                    input};
      const auto reference = make_convolution(*plain, spec, {first}),
                 operation = make_convolution(*library, spec, {picker});
      INFO(input.text() << " to " << c.outputs);
      REQUIRE(is_of_tiles(*operation));
      Bench expected(*reference, input), found(*operation, input);
      const auto output = expected.forward();
      const auto plain_gradients = expected.backward();
      check_rounds(found, output, plain_gradients, 1);
    }
}

TEST_CASE("gradients of a convolution from the winners of its pooling equal the plain loops", "[vectors]") {
  if (!has_vectors()) return;
  struct Case {
    std::int64_t samples, height, width, inputs, outputs;
  };
  const auto plain = make_reference_primitives();
  FirstPicker first;
  NamePicker picker("winners");
  for (const Case& c : {Case{3, 13, 13, 32, 64}, Case{1, 4, 4, 16, 16}, Case{2, 20, 18, 48, 80}, Case{2, 7, 9, 16, 24}})
    for (const int threads : {1, 3}) {
      if (onednn::has_avx512() && c.outputs == 24) continue;  // of eights
      use_threads(threads);
      const auto library = make_onednn_primitives(threads);
      const TensorDesc input =
          image(c.samples, c.height, c.width, c.inputs, onednn::has_avx512() || c.outputs == 64 ? "adbc16d" : "adbc8d");
      const ConvolutionProblem spec{{c.outputs, 3, 1, 0, true, Activation::relu, PoolSpec{PoolKind::maximum, 2, 2, 0}},
                                    input};
      const auto reference = make_convolution(*plain, spec, {first}),
                 operation = make_convolution(*library, spec, {picker});
      INFO(input.text() << " to " << c.outputs << " on " << threads << " threads");
      REQUIRE(operation->plan().picks.find("backward weights winners, backward data winners") != std::string::npos);
      Bench expected(*reference, input), found(*operation, input);
      const auto output = expected.forward();
      const auto plain_gradients = expected.backward();
      check_rounds(found, output, plain_gradients, threads);
    }
  use_threads(1);
}

TEST_CASE("a convolution over one channel that leaves out patches of zeros equals the plain loops, on any threads") {
  if (!has_avx512()) return;
  use_threads(3);
  const auto plain = make_reference_primitives();
  FirstPicker first;
  NamePicker picker("fused");
  for (const TensorDesc& input : {image(5, 13, 11, 1), image(3, 8, 7, 1)}) {
    const ConvolutionProblem spec{{32, 3, 1, 0, true, Activation::relu, PoolSpec{PoolKind::maximum, 2, 2, 0}}, input};
    const auto reference = make_convolution(*plain, spec, {first});
    const auto size = static_cast<std::size_t>(input.count() / input.shape[0]);
    const auto blacken = [&](const Bench& bench) {  // a sample is black, of another all but one pixel
      const std::span<float> x = bench.input().as<float>();
      std::ranges::fill(x.first(2 * size), 0.0F);
      x[size + size / 2] = 1;
    };
    Bench expected(*reference, input, false);
    blacken(expected);
    const auto output = expected.forward();
    const auto plain_gradients = expected.backward();
    for (const int threads : {1, 3}) {
      const auto library = make_onednn_primitives(threads);
      const auto operation = make_convolution(*library, spec, {.picker = picker, .input_gradient = false});
      INFO(input.text() << " on " << threads << " threads");
      REQUIRE(operation->plan().picks.starts_with("forward fused"));
      Bench found(*operation, input, false);
      blacken(found);
      check_rounds(found, output, plain_gradients, threads, 1);
    }
  }
  use_threads(1);
}

TEST_CASE("a convolution's bits do not depend on its threads where it is computed by tiles", "[vectors]") {
  if (!has_vectors()) return;
  use_threads(3);
  const auto alone = make_onednn_primitives(1), several = make_onednn_primitives(3);
  TilesPicker picker;
  for (const TensorDesc& input : {image(5, 19, 17, 96, "adbc16d"), image(2, 4, 4, 96, "adbc16d")}) {
    for (const bool pools : {false, true}) {
      ConvolutionProblem spec{{64, 3, 1, 1, false, pools ? Activation::relu : Activation::none, {}}, input};
      if (pools) spec.pool = PoolSpec{PoolKind::maximum, 2, 2, 0};
      const auto one = make_convolution(*alone, spec, {picker}), three = make_convolution(*several, spec, {picker});
      REQUIRE((is_of_tiles(*one) && is_of_tiles(*three)));
      Bench expected(*one, input), found(*three, input);
      CHECK(found.forward(3) == expected.forward());
      CHECK(found.backward(3) == expected.backward());
    }
  }
  use_threads(1);
}

TEST_CASE("a NaN stays in its sample where a convolution is computed by tiles", "[vectors]") {
  if (!has_vectors()) return;
  const auto library = make_onednn_primitives(1);
  TilesPicker picker;
  const TensorDesc input = image(3, 6, 5, 16, "adbc16d");
  const auto operation = make_convolution(*library, {{32, 3, 1, 1, true, Activation::relu, {}}, input}, {picker});
  REQUIRE(is_of_tiles(*operation));
  Bench bench(*operation, input);
  bench.input().as<float>()[static_cast<std::size_t>(input.count() / 3 + 7)] = garbage;  // the second sample's
  const auto output = bench.forward(), gradient = bench.backward()[0];
  for (const auto& values : {output, gradient}) {
    const std::size_t sample = values.size() / 3;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i / sample != 1 && std::isnan(values[i])) FAIL("NaN at " << i);
    }
  }
  CHECK(std::any_of(output.begin(), output.end(), [](float y) { return std::isnan(y); }));
}

TEST_CASE("shapes that do not fit are refused") {
  const auto library = make_onednn_primitives(1);
  FirstPicker picker;
  const OperationContext context{picker};
  CHECK_THROWS_AS(make_dense(*library, image(2, 3, 3, 17, "adbc16d"), {4}, context), LogicError);
  CHECK_THROWS_AS(make_dense(*library, {Shape{4}, DType::float32, {}}, {4}, context), InputError);
  CHECK_THROWS_AS(make_convolution(*library, {{4, 3, 1, 0, true, Activation::none, {}}, image(2, 2, 2, 1)}, context),
                  InputError);
  CHECK_THROWS_AS(make_pool(*library, image(2, 3, 3, 1), {PoolKind::maximum, 2, 2, 2}, context), InputError);
  CHECK_THROWS_AS(make_pool(*library, image(2, 3, 3, 1, "bcda"), {}, context), LogicError);
  CHECK_THROWS_AS(make_reorder(*library, image(2, 3, 3, 1), image(2, 3, 1, 3), context), Error);
}
