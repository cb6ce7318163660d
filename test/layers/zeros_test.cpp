// A result whose terms are all 0 is exactly 0 in every implementation: a following ReLU would decide by roundings, and
// an optimizer such as Adam would make whole steps of them.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <ronda/layers/primitives.hpp>

#include "layers/bench.hpp"
#include "support/catch.hpp"
#include "support/operations.hpp"
#include "support/sanitizer.hpp"

namespace zeros_test {

using namespace ronda;
using namespace ronda::test;

namespace {

/// Calls body(name, primitives, picker) for the plain loops, and for every candidate of the library's in some mixtures.
template <class Body>
void each_way(DType dtype, Body body) {
  FirstPicker first;
  if (dtype == DType::float32) body("plain loops", *make_reference_primitives(), first);
  const auto library = make_onednn_primitives(1, dtype);
  std::size_t candidates = 1;
  for (std::size_t wanted = 0; wanted < candidates; ++wanted) {
    ForcingPicker picker(wanted);
    body("candidate " + std::to_string(wanted), *library, picker);
    candidates = std::max(candidates, picker.most());
  }
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    MixingPicker picker(seed);
    body("mixture " + std::to_string(seed), *library, picker);
  }
}

/// Whether a pixel is 0: in half of an image, in some spots of the other half, and in every third sample.
bool is_zero(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t height) {
  if (n % 3 == 2) return true;  // whole samples
  return 2 * h < height || (h + 2 * w + n) % 11 < 4;
}

/// Sets the elements to 0 for which `zero(n, h, w, c)` is true, in any layout.
template <class Zero>
void clear(const Tensor& tensor, Zero zero) {
  const Shape& shape = tensor.shape();
  std::vector<float> values = plain_copy(tensor);
  std::size_t at = 0;
  for (std::int64_t n = 0; n < shape[0]; ++n)
    for (std::int64_t h = 0; h < shape[1]; ++h)
      for (std::int64_t w = 0; w < shape[2]; ++w)
        for (std::int64_t c = 0; c < shape[3]; ++c, ++at)
          if (zero(n, h, w, c)) values[at] = 0;
  const TensorDesc exact{shape, DType::float32, {}}, plain{shape, tensor.dtype(), {}};
  const Buffer rounded = Buffer::host(plain.bytes());
  convert(Tensor(exact, values.data()), Tensor(plain, rounded.data()));
  reorder(Tensor(plain, rounded.data()), tensor);
}

struct Case {
  TensorDesc input;
  std::int64_t outputs, kernel, padding;
  bool pooled = false;
};
std::vector<Case> cases(DType dtype) {
  std::vector<Case> all{{image(5, 13, 13, 32), 64, 3, 0, true},
                        {image(5, 13, 13, 32), 64, 3, 0},
                        {image(4, 9, 11, 16, "adbc16d"), 16, 3, 1},
                        {image(4, 10, 7, 16, "adbc8d"), 32, 3, 2},
                        {image(3, 5, 6, 48), 16, 3, 1, true},
                        {image(4, 28, 28, 1), 32, 3, 0, true},
                        {image(3, 12, 12, 3), 16, 5, 2},
                        {image(3, 8, 8, 16), 8, 1, 0},
                        {image(3, 16, 16, 64, "adbc16d"), 64, 3, 1, true}};
  for (Case& c : all) c.input.dtype = dtype;
  return all;
}

/// Whether any of the inputs of a window from (top, left) on is not 0.
template <class Zero>
bool sees(const Shape& image, std::int64_t top, std::int64_t left, std::int64_t kernel, Zero zero) {
  for (std::int64_t h = std::max<std::int64_t>(top, 0); h < std::min(top + kernel, image[1]); ++h)
    for (std::int64_t w = std::max<std::int64_t>(left, 0); w < std::min(left + kernel, image[2]); ++w)
      if (!zero(h, w)) return true;
  return false;
}

}  // namespace

TEST_CASE("an output of a convolution whose inputs are all 0 is the bias exactly", "[vectors]") {
  for (const DType dtype : {DType::float32, DType::bfloat16})
    for (const Case& c : cases(dtype))
      for (const Activation activation : {Activation::none, Activation::relu})
        each_way(dtype, [&](const std::string& name, Primitives& primitives, Picker& picker) {
          ConvolutionSpec spec{c.outputs, c.kernel, 1, c.padding, true, activation, {}};
          if (c.pooled) spec.pool = PoolSpec{PoolKind::maximum, 2, 2, 0};
          const auto convolution = make_convolution(primitives, {spec, c.input}, {picker});
          INFO(name << " of " << c.input.text() << " [" << convolution->plan().picks << "]");
          Bench bench(*convolution, c.input);
          clear(bench.input(), [&](auto n, auto h, auto w, auto) { return is_zero(n, h, w, c.input.shape[1]); });
          const auto bias = plain_copy(bench.parameter(1).value), y = bench.forward();
          const Shape& out = convolution->plan().output.shape;
          const std::int64_t step = c.pooled ? 2 : 1, window = c.pooled ? c.kernel + 1 : c.kernel;
          std::size_t at = 0, wrong = 0, zeros = 0;
          for (std::int64_t n = 0; n < out[0]; ++n)
            for (std::int64_t h = 0; h < out[1]; ++h)
              for (std::int64_t w = 0; w < out[2]; ++w)
                for (std::int64_t o = 0; o < out[3]; ++o, ++at) {
                  if (sees(c.input.shape, h * step - c.padding, w * step - c.padding, window,
                           [&](auto i, auto j) { return is_zero(n, i, j, c.input.shape[1]); }))
                    continue;
                  const float b = bias[static_cast<std::size_t>(o)];
                  wrong += y[at] != (activation == Activation::relu ? std::max(b, 0.0F) : b) ? 1 : 0;
                  ++zeros;
                }
          CHECK(zeros > 0);
          CHECK(wrong == 0);
        });
}

TEST_CASE("an input that no output's gradient comes to has a gradient of exactly 0", "[vectors]") {
  for (const DType dtype : {DType::float32, DType::bfloat16})
    for (const Case& c : cases(dtype))
      each_way(dtype, [&](const std::string& name, Primitives& primitives, Picker& picker) {
        ConvolutionSpec spec{c.outputs, c.kernel, 1, c.padding, true, Activation::none, {}};
        if (c.pooled) spec.pool = PoolSpec{PoolKind::maximum, 2, 2, 0};
        const auto convolution = make_convolution(primitives, {spec, c.input}, {picker});
        INFO(name << " of " << c.input.text() << " [" << convolution->plan().picks << "]");
        Bench bench(*convolution, c.input);
        const Shape out = convolution->plan().output.shape;
        constexpr std::int64_t shut = 5;  // a channel without gradient
        clear(bench.output_gradient(),
              [&](auto n, auto h, auto w, auto o) { return o == shut || is_zero(n, h, w, out[1]); });
        bench.forward();
        const auto gradients = bench.backward();
        const Shape& in = c.input.shape;
        // With pooling, every place of a window may have the gradient.
        const std::int64_t step = c.pooled ? 2 : 1, reach = c.kernel - 1;
        std::size_t at = 0, wrong = 0, zeros = 0;
        for (std::int64_t n = 0; n < in[0]; ++n)
          for (std::int64_t h = 0; h < in[1]; ++h)
            for (std::int64_t w = 0; w < in[2]; ++w)
              for (std::int64_t i = 0; i < in[3]; ++i, ++at) {
                const auto first = [&](std::int64_t place) {
                  return (place + c.padding - reach - (place + c.padding - reach < 0 ? step - 1 : 0)) / step;
                };
                const std::int64_t rows = (h + c.padding) / step - first(h) + 1,
                                   columns = (w + c.padding) / step - first(w) + 1;
                if (sees(out, first(h), first(w), std::max(rows, columns),
                         [&](auto r, auto s) { return is_zero(n, r, s, out[1]); }))
                  continue;
                wrong += gradients[0][at] != 0 ? 1 : 0;
                ++zeros;
              }
        CHECK(zeros > 0);
        CHECK(wrong == 0);
        const std::size_t each = gradients[1].size() / static_cast<std::size_t>(c.outputs);
        CHECK(std::all_of(gradients[1].begin() + shut * each, gradients[1].begin() + (shut + 1) * each,
                          [](float g) { return g == 0; }));
        CHECK(gradients[2][shut] == 0);
      });
}

TEST_CASE("a weight that meets padding alone has a gradient of exactly 0", "[vectors]") {
  for (const auto& [height, width] : {std::pair(1, 1), std::pair(1, 6), std::pair(7, 1)})
    for (const std::int64_t channels : {3, 16, 32})
      each_way(DType::float32,
               [&, height = height, width = width](const std::string& name, Primitives& primitives, Picker& picker) {
                 const TensorDesc input = image(5, height, width, channels);
                 const auto convolution =
                     make_convolution(primitives, {{32, 3, 1, 1, true, Activation::none, {}}, input}, {picker});
                 INFO(name << " of " << input.text() << " [" << convolution->plan().picks << "]");
                 Bench bench(*convolution, input);
                 bench.forward();
                 const auto gradients = bench.backward();
                 std::size_t wrong = 0;
                 for (std::size_t i = 0; i < gradients[1].size(); ++i) {
                   const bool outside = (height == 1 && i / 3 % 3 != 1) || (width == 1 && i % 3 != 1);
                   wrong += outside != (gradients[1][i] == 0) ? 1 : 0;
                 }
                 CHECK(wrong == 0);
               });
}

TEST_CASE("rows and units of zeros of a dense layer have the bias, and gradients of exactly 0", "[vectors]") {
  struct Size {
    std::int64_t rows, inputs, outputs;
  };
  for (const DType dtype : {DType::float32, DType::bfloat16})
    for (const Size& size : {Size{33, 70, 20}, Size{300, 500, 520}}) {  // the second also by Strassen
      if ((sanitized || dtype != DType::float32) && size.rows > 100) continue;
      each_way(dtype, [&](const std::string& name, Primitives& primitives, Picker& picker) {
        const TensorDesc input{Shape{size.rows, 1, 1, size.inputs}, dtype, {}};
        if (name == "plain loops" && size.rows > 100) return;  // too slow
        const auto dense = make_dense(primitives, input, {size.outputs, true, Activation::none}, {picker});
        INFO(name << " [" << dense->plan().picks << "]");
        Bench bench(*dense, input);
        const auto is_shut = [](std::int64_t i) { return i % 7 == 3; };
        clear(bench.input(), [&](auto n, auto, auto, auto i) { return is_shut(n) || is_shut(i); });
        const Tensor& given = bench.output_gradient();
        const Tensor as_image(TensorDesc{Shape{size.rows, 1, 1, size.outputs}, dtype, {}}, given.data());
        clear(as_image, [&](auto n, auto, auto, auto o) { return is_shut(n + 2) || is_shut(o); });
        const auto bias = plain_copy(bench.parameter(1).value), y = bench.forward();
        const auto gradients = bench.backward();
        std::size_t wrong = 0;
        for (std::int64_t n = 0; n < size.rows; ++n) {
          for (std::int64_t o = 0; o < size.outputs && is_shut(n); ++o)
            wrong += y[static_cast<std::size_t>(n * size.outputs + o)] != bias[static_cast<std::size_t>(o)] ? 1 : 0;
          for (std::int64_t i = 0; i < size.inputs && is_shut(n + 2); ++i)
            wrong += gradients[0][static_cast<std::size_t>(n * size.inputs + i)] != 0 ? 1 : 0;
        }
        for (std::int64_t o = 0; o < size.outputs; ++o)
          for (std::int64_t i = 0; i < size.inputs; ++i)
            if (is_shut(o) || is_shut(i))
              wrong += gradients[1][static_cast<std::size_t>(o * size.inputs + i)] != 0 ? 1 : 0;
        CHECK(wrong == 0);
      });
    }
}

}  // namespace zeros_test
