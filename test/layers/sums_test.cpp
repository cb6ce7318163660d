// Long sums over rows and pixels compared with sums in double: constants, where all roundings have the same sign, and
// random numbers with an offset.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ronda/core/parallel.hpp>
#include <ronda/layers/primitives.hpp>

#include "layers/bench.hpp"
#include "support/catch.hpp"
#include "support/operations.hpp"
#include "support/sanitizer.hpp"

namespace sums_test {

using namespace ronda;
using namespace ronda::test;

namespace {

constexpr double rounding = 0x1p-24;
/// A block of 16 terms rounds at most 15 times, the sum of blocks and its use at most three times.
constexpr double of_blocks = 18 * rounding;
/// A product adds up to 512 = 2^9 terms in one sum, and pairs of such sums. Roundings of 512 equal terms have one sign
/// in each octave, by a quarter of a unit on average.
constexpr double of_products = 160 * rounding;

float tenth(float) { return 0.1F; }
float most(float) { return 0.9F; }
float shifted(float x) { return 5 + x; }
constexpr Draw draws[] = {tenth, most, shifted};

/// Numbers of terms; `some` where each takes long.
const std::int64_t many = sanitized ? 20'000 : 1'000'000, some = sanitized ? 2'000 : 20'000;

using Values = std::vector<float>;

/// Σ over all rows of a · b, columns of two matrices; if b is null, the sum of a.
double sum_of_columns(const Values& a, std::size_t a_columns, std::size_t a_column, const Values* b = nullptr,
                      std::size_t b_columns = 1, std::size_t b_column = 0) {
  double sum = 0;
  for (std::size_t row = 0; row < a.size() / a_columns; ++row)
    sum += double{a[row * a_columns + a_column]} * (b == nullptr ? 1.0 : double{(*b)[row * b_columns + b_column]});
  return sum;
}

void check_sum(const std::string& what, float found, double expected, double bound) {
  INFO(what << ": " << found << ", not " << expected << ", error " << std::abs(found - expected) / std::abs(expected));
  CHECK(std::abs(found - expected) <= bound * std::abs(expected));
}

/// The values that `fill` writes to a tensor of the bench.
Values drawn(std::int64_t count, std::uint64_t stream, Draw draw) {
  Values values = random_numbers(count, stream, 1);
  std::ranges::transform(values, values.begin(), draw);
  return values;
}

/// Calls body(name, primitives, picker) for the plain loops, and for every candidate of the library's.
template <class Body>
void each_way(Body body) {
  FirstPicker first;
  const auto plain = make_reference_primitives(), library = make_onednn_primitives(1);
  body("plain loops", *plain, first);
  for (std::size_t wanted = 0; wanted < (sanitized ? 2U : 4U); ++wanted) {
    ForcingPicker picker(wanted);
    body("oneDNN, candidate " + std::to_string(wanted), *library, picker);
  }
}

}  // namespace

TEST_CASE("the mean of a large image is right to the roundings of a block", "[vectors]") {
  const std::int64_t side = sanitized ? 128 : 1024;
  FirstPicker picker;
  for (const auto& primitives : {make_reference_primitives(), make_onednn_primitives(1)})
    for (const Draw draw : {tenth, shifted})
      for (const char* layout : {"plain", "adbc16d"}) {
        const TensorDesc input = image(1, side, side, 2, layout);
        const auto pool = make_pool(*primitives, input, {PoolKind::average, side, 1, 0}, {picker});
        Bench bench(*pool, input, false, draw);
        const Values x = drawn(side * side * 2, 1, draw), y = bench.forward();
        for (std::size_t c = 0; c < 2; ++c)
          check_sum(primitives->name(), y[c], sum_of_columns(x, 2, c) / static_cast<double>(side * side), of_blocks);
      }
}

TEST_CASE("gradients of a dense layer's parameters are right after many rows", "[vectors]") {
  struct Case {
    std::int64_t rows, inputs, outputs;
    Draw draw;
  };
  for (const Case& c :
       {Case{some, 3, 4, tenth}, Case{some, 3, 4, most}, Case{some, 3, 4, shifted}, Case{many, 1, 1, tenth}})
    each_way([&](const std::string& name, Primitives& primitives, Picker& picker) {
      const TensorDesc input{Shape{c.rows, c.inputs}, DType::float32, {}};
      const auto dense = make_dense(primitives, input, {c.outputs, true, Activation::none}, {picker});
      Bench bench(*dense, input, false, c.draw);
      bench.forward();
      const auto gradients = bench.backward();
      const Values x = drawn(c.rows * c.inputs, 1, c.draw), dy = drawn(c.rows * c.outputs, 2, c.draw);
      const auto inputs = static_cast<std::size_t>(c.inputs), outputs = static_cast<std::size_t>(c.outputs);
      const std::string what = name + " [" + dense->plan().picks + "]";
      for (std::size_t o = 0; o < outputs; ++o) {
        check_sum(what + ", bias", gradients[2][o], sum_of_columns(dy, outputs, o), of_blocks);
        for (std::size_t i = 0; i < inputs; ++i)
          check_sum(what + ", weight", gradients[1][o * inputs + i], sum_of_columns(dy, outputs, o, &x, inputs, i),
                    of_products);
      }
    });
}

TEST_CASE("gradients of a convolution's parameters are right after many pixels and samples", "[vectors]") {
  struct Case {
    std::int64_t samples, side, inputs, outputs, kernel;
    PoolSpec pool = {};
  };
  const std::int64_t side = sanitized ? 72 : 200;
  for (const Case& c :
       {Case{1, side, 3, 4, 1}, Case{1, side, 16, 16, 3}, Case{400, 9, 3, 16, 3}, Case{400, 6, 16, 16, 3}})
    each_way([&](const std::string& name, Primitives& primitives, Picker& picker) {
      if (c.inputs * c.kernel > 16 && name == "plain loops") return;  // too slow
      for (const Draw draw : {most, shifted}) {
        const TensorDesc input = image(c.samples, c.side, c.side, c.inputs);
        const auto convolution =
            make_convolution(primitives, {{c.outputs, c.kernel, 1, 0, true, Activation::none, {}}, input}, {picker});
        Bench bench(*convolution, input, false, draw);
        bench.forward();
        const auto gradients = bench.backward();
        const std::int64_t out = c.side - c.kernel + 1;
        const Values x = drawn(input.count(), 1, draw), dy = drawn(c.samples * out * out * c.outputs, 2, draw);
        const std::string what = name + " [" + convolution->plan().picks + "]";
        check_sum(what + ", bias", gradients[2][1], sum_of_columns(dy, static_cast<std::size_t>(c.outputs), 1),
                  of_blocks);
        double sum = 0;  // for output 1, input 2 and the kernel's last element
        for (std::int64_t n = 0; n < c.samples; ++n)
          for (std::int64_t h = 0; h < out; ++h)
            for (std::int64_t w = 0; w < out; ++w)
              sum += double{dy[static_cast<std::size_t>(((n * out + h) * out + w) * c.outputs + 1)]} *
                     x[static_cast<std::size_t>(
                         ((n * c.side + h + c.kernel - 1) * c.side + w + c.kernel - 1) * c.inputs + 2)];
        const std::int64_t place = (c.inputs + 3) * c.kernel * c.kernel - 1;
        check_sum(what + ", weight", gradients[1][static_cast<std::size_t>(place)], sum, of_products);
      }
    });
}

TEST_CASE("gradients of a convolution behind a max-pool are right after many windows", "[vectors]") {
  // Outputs of positive inputs and weights are equal, so the first place wins, and every window has a gradient.
  for (const auto& [samples, side, inputs] :
       {std::array<std::int64_t, 3>{1, sanitized ? 74 : 402, 1}, std::array<std::int64_t, 3>{500, 12, 1},
        std::array<std::int64_t, 3>{500, 12, 16}})
    each_way([&, samples = samples, side = side, inputs = inputs](const std::string& name, Primitives& primitives,
                                                                  Picker& picker) {
      if (name == "plain loops") return;
      const TensorDesc input = image(samples, side, side, inputs);
      const PoolSpec pool{PoolKind::maximum, 2, 2, 0};
      const auto convolution =
          make_convolution(primitives, {{16, 3, 1, 0, true, Activation::relu, pool}, input}, {picker});
      Bench bench(*convolution, input, false, most);
      bench.forward();
      const auto gradients = bench.backward();
      const auto windows = static_cast<double>(samples * (side - 2) / 2 * ((side - 2) / 2));
      const std::string what = name + " [" + convolution->plan().picks + "]";
      check_sum(what + ", bias", gradients[2][3], windows * double{0.9F}, of_blocks);
      check_sum(what + ", weight", gradients[1][5], windows * double{0.9F} * double{0.9F}, of_products);
    });
}

TEST_CASE("gradients of norms, positions and tables are right after many rows", "[vectors]") {
  FirstPicker picker;
  for (const auto& primitives : {make_reference_primitives(), make_onednn_primitives(1)})
    for (const Draw draw : draws) {
      const TensorDesc rows{Shape{some, 4}, DType::float32, {}};
      const auto norm = primitives->make(LayerNormSpec{}, {&rows, 1}, {picker});
      Bench normalized(*norm, rows, false, draw);
      normalized.forward();
      check_sum("layer norm", normalized.backward()[2][1], sum_of_columns(drawn(some * 4, 2, draw), 4, 1), of_blocks);

      const TensorDesc steps{Shape{some, 2, 3}, DType::float32, {}};
      const auto position = primitives->make(PositionSpec{2}, {&steps, 1}, {picker});
      if (!position) continue;  // then the plain loops'
      Bench placed(*position, steps, false, draw);
      placed.forward();
      check_sum("positions", placed.backward()[1][4], sum_of_columns(drawn(some * 6, 2, draw), 6, 4), of_blocks);
    }
}

TEST_CASE("a bag of many tokens, and the gradient of a row that many tokens name, are right", "[vectors]") {
  const auto primitives = make_reference_primitives();
  FirstPicker picker;
  for (const std::optional<BagMode> bag : {std::optional(BagMode::sum), std::optional<BagMode>()}) {
    const TensorDesc tokens{Shape{2, some / 2}, DType::int32, {}};
    const auto embedding = primitives->make(EmbeddingSpec{.rows = 3, .width = 2, .bag = bag}, {&tokens, 1}, {picker});
    std::vector<std::int32_t> ones(static_cast<std::size_t>(tokens.count()), 1);
    const Tensor input(tokens, ones.data());
    Owned y(embedding->plan().output, garbage), dy(embedding->plan().output, 0.9F),
        value(embedding->plan().parameters[0], 0.9F), gradient(embedding->plan().parameters[0], garbage);
    Parameter table{ParameterId{0}, "p", value.tensor, gradient.tensor, {}, {}};
    OperationMemory memory{.output = y.tensor, .input_gradients = {Tensor()}, .parameters = {&table}};
    embedding->bind(memory);
    CpuStream stream(1);
    const Pass pass{.stream = stream, .on_ready = {}};
    embedding->forward({&input, 1}, pass);
    if (bag == BagMode::sum)
      check_sum("bag", plain_copy(y.tensor)[3], static_cast<double>(some / 2) * double{0.9F}, of_blocks);
    embedding->backward({&input, 1}, dy.tensor, pass);
    const Values found = plain_copy(gradient.tensor);
    check_sum("row", found[3], static_cast<double>(some) * double{0.9F}, of_blocks);
    CHECK(found[0] == 0);
    CHECK(found[4] == 0);
  }
}

}  // namespace sums_test
