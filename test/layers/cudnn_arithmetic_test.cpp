// The arithmetic of the GPU's kernels, run on the host, is that of the plain loops.
#include "support/catch.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <ronda/layers/cudnn/geometry.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/layers/softmax_cross_entropy.hpp>
#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/core/random.hpp>

using namespace ronda;

namespace {

std::vector<float> numbers(std::int64_t count, std::uint64_t stream) {
  const RngKey key(11, Purpose::test, stream);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2 * key.uniform(i) - 1;
  return values;
}
std::vector<float> nothing(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN());
}

template <class Body>
void for_each(std::int64_t count, const Body& body) {
  for (std::int64_t i = count; i-- > 0;) body(i);  // in any order
}

/// An operation of the plain loops on these numbers.
struct Plain {
  Plain(Operation& operation, const TensorDesc& input, std::vector<float>& x, std::vector<float>& dy)
      : y(nothing(operation.plan().output.count())), dx(nothing(input.count())) {
    CpuStream stream;
    const Pass pass{.stream = stream, .on_ready = {}};
    operation.bind({.output = Tensor(operation.plan().output, y.data()), .input_gradient = Tensor(input, dx.data())});
    operation.forward(Tensor(input, x.data()), pass);
    operation.backward(Tensor(input, x.data()), Tensor(operation.plan().output, dy.data()), pass);
  }
  std::vector<float> y, dx;
};

}  // namespace

TEST_CASE("pooling on a GPU computes what the plain loops compute, to the bit") {
  const auto reference = make_reference_primitives();
  FirstPicker picker;
  for (const PoolKind kind : {PoolKind::maximum, PoolKind::average})
    for (const auto& [kernel, stride, padding] : {std::array{2, 2, 0}, {3, 2, 1}, {3, 1, 1}, {2, 3, 0}, {5, 2, 2}}) {
      const PoolSpec spec{kind, kernel, stride, padding};
      const TensorDesc input{{2, 9, 7, 3}, DType::float32, {}};
      const auto operation = reference->pool(input, spec, {picker});
      const Shape out = operation->plan().output.shape;
      auto x = numbers(input.count(), 1), dy = numbers(out.count(), 2);
      for (std::size_t i = 0; i < x.size(); i += 4) x[i] = 0.5F;  // ties: the first wins
      const Plain expected(*operation, input, x, dy);
      auto y = nothing(out.count()), dx = nothing(input.count());
      const cudnn::PoolGeometry geometry = cudnn::geometry(input.shape, spec);
      for_each(out.count(), cudnn::Pool{geometry, x.data(), y.data()});
      for_each(input.count(), cudnn::PoolGradient{geometry, x.data(), dy.data(), dx.data(), false});
      INFO("kernel " << kernel << " stride " << stride << " padding " << padding);
      CHECK(y == expected.y);
      CHECK(dx == expected.dx);
      for_each(input.count(), cudnn::PoolGradient{geometry, x.data(), dy.data(), dx.data(), true});
      std::vector<float> masked = expected.dx;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (!(x[i] > 0)) masked[i] = 0;
      CHECK(dx == masked);
    }
}

TEST_CASE("ReLU and bias on a GPU compute what the plain loops compute, to the bit") {
  const auto reference = make_reference_primitives();
  FirstPicker picker;
  const TensorDesc input{{5, 6}, DType::float32, {}};
  const auto operation = reference->relu(input, {picker});
  auto x = numbers(input.count(), 3), dy = numbers(input.count(), 4);
  x[7] = 0;
  const Plain expected(*operation, input, x, dy);
  auto y = nothing(input.count()), dx = nothing(input.count());
  for_each(input.count(), cudnn::Relu{x.data(), y.data()});
  for_each(input.count(), cudnn::ReluGradient{y.data(), dy.data(), dx.data()});
  CHECK(y == expected.y);
  CHECK(dx == expected.dx);

  const auto bias = numbers(6, 5);
  for (const bool relu : {false, true}) {
    y = x;
    for_each(input.count(), cudnn::AddBias{y.data(), bias.data(), 6, relu});
    for (std::size_t i = 0; i < y.size(); ++i) {
      const float sum = x[i] + bias[i % 6];
      CHECK(y[i] == (relu && !(sum > 0) ? 0.0F : sum));
    }
  }
  y = x;
  for_each(input.count(), cudnn::AddBias{y.data(), nullptr, 6, true});
  CHECK(y == expected.y);
}

TEST_CASE("columns are summed in two goes, whatever their number") {
  for (const std::int64_t rows : {1, 15, 16, 100, 5000})
    for (const std::int64_t columns : {std::int64_t{1}, std::int64_t{3}, std::int64_t{64}, 100000 / rows}) {
      const auto x = numbers(rows * columns, 6);
      const std::int64_t chunks = cudnn::column_chunks(rows, columns);
      auto partial = nothing(chunks * columns), sums = nothing(columns);
      for_each(chunks * columns, cudnn::SumRows{x.data(), partial.data(), rows, columns, chunks});
      for_each(columns, cudnn::SumRows{partial.data(), sums.data(), chunks, columns, 1});
      for (std::int64_t c = 0; c < columns; ++c) {
        double expected = 0;
        for (std::int64_t r = 0; r < rows; ++r) expected += x[static_cast<std::size_t>(r * columns + c)];
        // sums of at most `rows` numbers below 1 in float32, each rounding at most 2^-24 of a partial sum
        REQUIRE(std::abs(sums[static_cast<std::size_t>(c)] - expected) <= 1e-6 * static_cast<double>(rows));
      }
    }
}

TEST_CASE("softmax cross entropy on a GPU computes what the CPU's does") {
  constexpr std::int64_t rows = 9, classes = 13;
  const TensorDesc desc{{rows, classes}, DType::float32, {}};
  auto x = numbers(rows * classes, 7);
  for (float& value : x) value *= 20;
  x[3] = x[4] = 30;  // a tie of the largest: the first counts
  std::vector<std::int32_t> labels{3, 4, 0, 12, 5, 6, 7, 8, 9};
  auto weights = numbers(rows, 8);
  for (float& weight : weights) weight = std::abs(weight);
  weights[5] = 0;
  for (const float smoothing : {0.0F, 0.1F}) {
    const auto reference = make_reference_primitives()->softmax_cross_entropy(desc, smoothing);
    StepControl expected, found;
    auto gradient = nothing(rows * classes), expected_gradient = gradient;
    CpuStream stream;
    const Tensor weight_tensor{std::span(weights)};
    reference->run(
        Tensor(desc, x.data()), Tensor(std::span(labels)), Tensor(desc, expected_gradient.data()), nullptr,
        {.stream = stream, .weights = &weight_tensor, .loss_scale = 0.25F, .control = &expected, .on_ready = {}});
    std::vector<double> losses(2 * rows);
    const cudnn::SoftmaxRow row{x.data(),      labels.data(), weights.data(), gradient.data(),
                                losses.data(), classes,       smoothing,      0.25F};
    for (std::int64_t n = 0; n < rows; ++n) row(cudnn::OneThread{}, n);
    cudnn::SumLosses{losses.data(), weights.data(), rows, &found}(cudnn::OneThread{}, 0);
    CHECK(found.weight == Approx(expected.weight).epsilon(1e-12));
    CHECK(found.correct == Approx(expected.correct).epsilon(1e-12));
    CHECK(found.loss == Approx(expected.loss).epsilon(1e-6));  // float32 exponentials and logarithms
    for (std::size_t i = 0; i < gradient.size(); ++i) CHECK(gradient[i] == Approx(expected_gradient[i]).margin(1e-7));
  }
}

TEST_CASE("a label that is none makes a GPU's loss and gradient NaN, so that the step is not applied") {
  const std::vector<float> x{1, 2, 3}, weights{1};
  for (const std::int32_t label : {-1, 3}) {
    std::vector<float> gradient(3);
    std::vector<double> losses(2);
    cudnn::SoftmaxRow{x.data(), &label, weights.data(), gradient.data(), losses.data(), 3, 0.0F, 1.0F}(
        cudnn::OneThread{}, 0);
    CHECK(std::isnan(losses[0]));
    for (const float value : gradient) CHECK(std::isnan(value));
  }
}
