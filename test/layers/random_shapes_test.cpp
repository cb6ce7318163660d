// Random convolutions and poolings, with numbers and with NaNs among them: every candidate of every choice against the
// plain loops. Under AddressSanitizer also: nothing outside of a buffer is touched, while planning or while running.
#include "layers/bench.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <ronda/core/random.hpp>
#include <ronda/layers/primitives.hpp>

using namespace ronda;
using namespace ronda::test;

namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t game) : key_(13 * test::seed(), Purpose::test, game) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low +
           static_cast<std::int64_t>(key_.uniform(throws_++) * static_cast<float>(high - low + 1)) % (high - low + 1);
  }
  bool yes() { return between(0, 1) == 1; }
  template <class T, std::size_t n>
  T one_of(const T (&values)[n]) {
    return values[static_cast<std::size_t>(between(0, n - 1))];
  }

 private:
  RngKey key_;
  std::uint64_t throws_ = 0;
};

PoolSpec random_pool(Dice& dice, std::int64_t height, std::int64_t width) {
  PoolSpec pool;
  pool.kind = dice.between(0, 2) > 0 ? PoolKind::maximum : PoolKind::average;
  const bool square = dice.yes();
  const auto direction = [&](std::int64_t extent, std::int64_t& kernel, std::int64_t& stride, std::int64_t& padding) {
    kernel = dice.between(1, 4);
    padding = dice.between(0, kernel / 2);  // with stride 1 the pool may grow
    if (extent + 2 * padding < kernel) kernel = padding = 1;
    if (kernel == 1) padding = 0;
    stride = dice.between(1, 3);
  };
  direction(square ? std::min(height, width) : height, pool.kernel.height, pool.stride.height, pool.padding.height);
  if (square)
    pool = {pool.kind, pool.kernel.height, pool.stride.height, pool.padding.height};
  else
    direction(width, pool.kernel.width, pool.stride.width, pool.padding.width);
  return pool;
}

void make_unusual(ConvolutionSpec& spec, Dice& dice) {
  spec.kernel.width = dice.between(1, 4);
  spec.padding.width = dice.between(0, 2);
  spec.stride.width = dice.between(1, 3);
  if (dice.yes()) spec.dilation = {dice.between(1, 3), dice.between(1, 2)};
  if (dice.yes()) spec.trailing = {dice.between(0, 1), dice.between(0, 1)};
}

ConvolutionProblem random_convolution(Dice& dice) {
  ConvolutionProblem spec;
  const char* const layouts[] = {"plain", "adbc16d", "adbc8d", "adbc"};
  const std::int64_t channels[] = {1, 2, 3, 8, 16, 17, 32}, outputs[] = {3, 16, 20, 32}, kernels[] = {1, 2, 3, 5};
  spec.kernel = dice.one_of(kernels);
  spec.padding = dice.between(0, 2);
  spec.stride = dice.between(1, 2);
  if (dice.yes()) make_unusual(spec, dice);
  const HeightWidth least{spec.dilation.height * (spec.kernel.height - 1) + 1,
                          spec.dilation.width * (spec.kernel.width - 1) + 1};
  spec.input = image(dice.between(1, 3), dice.between(least.height, least.height + 4),
                     dice.between(least.width, least.width + 4), dice.one_of(channels), dice.one_of(layouts));
  spec.outputs = dice.one_of(outputs);
  const std::int64_t in = spec.input.shape[3];
  if (dice.between(0, 2) == 0 && in > 1) {
    spec.groups = dice.yes() || in % 2 != 0 ? in : 2;
    spec.outputs = dice.between(1, 3) * spec.groups;
  }
  spec.bias = dice.yes();
  spec.activation = dice.yes() ? Activation::relu : Activation::none;
  const Shape convolved = convolution_output(spec);
  if (dice.between(0, 3) > 0) spec.pool = random_pool(dice, convolved[1], convolved[2]);
  return spec;
}

std::string text_of(const PoolSpec& pool) {
  return (pool.kind == PoolKind::maximum ? " maximum of " : " average of ") + pool.kernel.text() + " stride " +
         pool.stride.text() + " padding " + pool.padding.text();
}
std::string text_of(const ConvolutionProblem& spec) {
  return spec.input.text() + " to " + std::to_string(spec.outputs) + " " + text_of_windows(spec) +
         (spec.bias ? "" : " without bias") + (spec.activation == Activation::relu ? " with relu" : "") +
         (spec.pool ? text_of(*spec.pool) : "");
}

/// NaN in some elements.
void sprinkle(const Tensor& tensor, std::uint64_t stream, float share) {
  std::vector<float> values = plain_copy(tensor);
  const RngKey key(17, Purpose::test, stream);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (key.uniform(i) < share) values[i] = std::numeric_limits<float>::quiet_NaN();
  reorder(Tensor({tensor.shape(), DType::float32, {}}, values.data()), tensor);
}

/// NaN where it is expected, and nowhere else unless it may spread to neighbours; all other numbers are close.
void check_nans(const std::string& what, const std::vector<float>& found, const std::vector<float>& expected,
                bool may_spread) {
  REQUIRE(found.size() == expected.size());
  std::size_t lost = 0, invented = 0;
  std::vector<float> a, b;
  for (std::size_t i = 0; i < found.size(); ++i) {
    lost += static_cast<std::size_t>(std::isnan(expected[i]) && !std::isnan(found[i]));
    invented += static_cast<std::size_t>(!std::isnan(expected[i]) && std::isnan(found[i]));
    if (std::isnan(found[i]) || std::isnan(expected[i])) continue;
    a.push_back(found[i]);
    b.push_back(expected[i]);
  }
  INFO(what << ": " << lost << " NaN lost, " << invented << " invented");
  CHECK(lost == 0);
  CHECK((may_spread || invented == 0));
  check_close(what, a, b, 1e-4F);
}

bool has_nan(const std::vector<float>& values) {
  return std::any_of(values.begin(), values.end(), [](float v) { return std::isnan(v); });
}

/// As `compare`, of an input with NaNs.
template <class Make>
void compare_nans(const std::string& what, const TensorDesc& input, std::uint64_t stream, float share, Make make) {
  const auto plain = make_reference_primitives(), library = make_onednn_primitives(1);
  FirstPicker first;
  const auto reference = make(*plain, OperationContext{first});
  Bench expected(*reference, input);
  sprinkle(expected.input(), stream, share);
  const auto output = expected.forward();
  const auto gradients = expected.backward();
  std::size_t candidates = 1;
  for (std::size_t wanted = 0; wanted < candidates; ++wanted) {
    ForcingPicker picker(wanted);
    const auto operation = make(*library, OperationContext{picker});
    candidates = std::max(candidates, picker.most());
    const std::string picks = operation->plan().picks, name = what + " [" + picks + "]";
    const bool may_spread = picks.find("winograd") != std::string::npos;  // it transforms tiles
    Bench found(*operation, input);
    sprinkle(found.input(), stream, share);
    check_nans(name + " output", found.forward(), output, may_spread);
    const auto all = found.backward();
    if (!may_spread) check_nans(name + " input gradient", all[0], gradients[0], false);
    for (std::size_t i = 1; i < all.size(); ++i) {
      INFO(name << " parameter gradient");
      // 0 · NaN is not computed everywhere: a NaN that no output shows, as a pool can step over it, may be in none.
      CHECK((has_nan(all[i]) == has_nan(gradients[i]) || (!has_nan(all[i]) && !has_nan(output))));
    }
  }
}

}  // namespace

TEST_CASE("random convolutions equal the plain loops") {
  for (std::uint64_t game = 0; game < 120; ++game) {
    Dice dice(game);
    const ConvolutionProblem spec = random_convolution(dice);
    const auto make = [&](Primitives& primitives, const OperationContext& context) {
      return make_convolution(primitives, spec, context);
    };
    compare("convolution " + text_of(spec), spec.input, make);
    if (game % 2 == 0) compare_nans("convolution " + text_of(spec), spec.input, game, 0.01F, make);
  }
}

TEST_CASE("random poolings equal the plain loops") {
  for (std::uint64_t game = 0; game < 200; ++game) {
    Dice dice(1000 + game);
    const char* const layouts[] = {"plain", "adbc16d", "adbc8d", "adbc"};
    const std::int64_t channels[] = {1, 3, 8, 17, 32};
    const TensorDesc input =
        image(dice.between(1, 2), dice.between(1, 9), dice.between(1, 9), dice.one_of(channels), dice.one_of(layouts));
    const PoolSpec spec = random_pool(dice, input.shape[1], input.shape[2]);
    const auto make = [&](Primitives& primitives, const OperationContext& context) {
      return make_pool(primitives, input, spec, context);
    };
    compare("pooling " + input.text() + text_of(spec), input, make);
    for (const float share : {0.05F, 0.5F, 1.0F})
      compare_nans("pooling " + input.text() + text_of(spec), input, game, share, make);
  }
}

TEST_CASE("an image of one pixel is pooled to a larger one in its own layout") {
  for (const char* layout : {"plain", "adbc16d", "adbc8d", "adbc"})
    for (const PoolKind kind : {PoolKind::maximum, PoolKind::average}) {
      const TensorDesc input = image(2, 1, 1, 32, layout);
      compare("pooling " + input.text(), input, [&](Primitives& primitives, const OperationContext& context) {
        return make_pool(primitives, input, {kind, 4, 1, 2}, context);
      });
      ConvolutionProblem convolution;
      convolution.kernel = 3;
      convolution.input = image(2, 3, 3, 16, layout);
      convolution.outputs = 32;
      convolution.pool = PoolSpec{kind, 2, 1, 1};
      compare("convolution " + text_of(convolution), convolution.input,
              [&](Primitives& primitives, const OperationContext& context) {
                return make_convolution(primitives, convolution, context);
              });
    }
}

TEST_CASE("a dense layer and functions of each element keep NaN") {
  for (const Shape& shape : {Shape{5, 17}, Shape{64, 130}})
    for (const std::int64_t outputs : {3, 70}) {
      const TensorDesc input{shape, DType::float32, {}};
      compare_nans("dense " + shape.text(), input, 1, 0.005F,
                   [&](Primitives& primitives, const OperationContext& context) {
                     return make_dense(primitives, input, {outputs, true, Activation::relu}, context);
                   });
      for (const ElementwiseFunction function : every_function)
        compare_nans(kind_of(ElementwiseSpec{function}) + " " + shape.text(), input, 2, 0.2F,
                     [&](Primitives& primitives, const OperationContext& context) {
                       return make_elementwise(primitives, function, input, context);
                     });
    }
}

TEST_CASE("the plain loops keep NaN, and give it its gradient, as PyTorch") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto plain = make_reference_primitives();
  FirstPicker picker;
  const auto run = [&](Operation& operation, const TensorDesc& input, std::vector<float> values) {
    Bench bench(operation, input);
    std::copy(values.begin(), values.end(), bench.input().as<float>().begin());
    auto output = bench.forward();
    return std::pair(output, bench.backward()[0]);
  };
  const TensorDesc line{Shape{1, 4}, DType::float32, {}};
  const auto relu = make_relu(*plain, line, {picker});
  const auto [y, dx] = run(*relu, line, {nan, -1, 0, 2});
  CHECK(std::isnan(y[0]));
  CHECK((y[1] == 0 && y[2] == 0 && y[3] == 2));
  CHECK((dx[0] != 0 && dx[1] == 0 && dx[2] == 0 && dx[3] != 0));

  const TensorDesc square = image(1, 2, 2, 1);
  const auto pool = make_pool(*plain, square, {PoolKind::maximum, 2, 2, 0}, {picker});
  const auto [largest, gradient] = run(*pool, square, {nan, 3, nan, 5});
  CHECK(std::isnan(largest[0]));
  CHECK((gradient[0] == 0 && gradient[1] == 0 && gradient[2] != 0 && gradient[3] == 0));
}
