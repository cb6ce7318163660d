// The plain loops against finite differences: everything else is compared with the plain loops.
#include <ronda/core/buffer.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>
#include <ronda/layers/elementwise.hpp>

#include "support/gradient_probe.hpp"

#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

using namespace ronda;
using namespace ronda::test;

namespace {

void check(const Layer& layer, const Shape& shape, const std::string& what) {
  check_against_differences(what + " " + shape.text(), layer, shape);
}

void fill(const Tensor& tensor, std::uint64_t stream, float scale) {
  const RngKey key(11, Purpose::test, stream);
  auto values = tensor.as<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = scale * (2 * key.uniform(i) - 1);
}

/// A loss with memory of its own.
struct LossBench {
  LossBench(const Loss& loss, const TensorDesc& outputs)
      : primitives(make_reference_primitives()),
        operation(loss.make(outputs, *primitives)),
        memory(Buffer::host(outputs.bytes())),
        scratch(Buffer::host(operation->scratch_bytes())),
        gradient(outputs, memory.data()) {}
  const Tensor& run(const Tensor& outputs, const Tensor& target, const Pass& pass) {
    operation->run(outputs, target, gradient, scratch.data(), pass);
    return gradient;
  }
  std::unique_ptr<Primitives> primitives;
  std::unique_ptr<LossOperation> operation;
  Buffer memory, scratch;
  Tensor gradient;
};

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
  Sequential pooled(Conv2d(3, 3), ReLU(), MaxPool2d(2));
  check(pooled, {2, 8, 9, 2}, "conv, relu and max pool");
  Sequential averaged(Conv2d(3, 3), AveragePool2d(3, 2, 1));
  check(averaged, {2, 8, 7, 2}, "conv and average pool");
}

TEST_CASE("pooling gradients equal finite differences") {
  for (const std::int64_t padding : {0, 1}) {
    MaxPool2d largest(3, 2, padding);
    check(largest, {2, 7, 6, 3}, "max pool");
    AveragePool2d mean(3, 2, padding);
    check(mean, {2, 7, 6, 3}, "average pool");
  }
  ReLU relu;
  check(relu, {3, 5}, "relu");
  check(GELU(), {3, 50}, "gelu");
  check(SiLU(), {3, 50}, "silu");
  check(Tanh(), {3, 50}, "tanh");
  check(Sigmoid(), {3, 50}, "sigmoid");
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

TEST_CASE("GELU has PyTorch's values") {
  const std::pair<float, float> values[] = {{-3, -0.00404969F},  {-1, -0.15865526F}, {-0.5F, -0.15426877F}, {0, 0},
                                            {0.5F, 0.34573123F}, {1, 0.84134474F},   {2, 1.95449974F},      {10, 10}};
  for (const auto& [x, y] : values) CHECK(elementwise::Gelu::value(x) == Approx(y).margin(1e-6));
}

TEST_CASE("SiLU, tanh and the sigmoid have PyTorch's values, also where e to the x is no float32") {
  struct Case {
    float x, silu, tanh, sigmoid;
  };
  for (const Case& c : {Case{-3, -0.14227761F, -0.99505478F, 0.04742587F},
                        Case{-0.5F, -0.18877034F, -0.46211717F, 0.37754068F}, Case{0, 0, 0, 0.5F},
                        Case{2, 1.7615942F, 0.96402758F, 0.88079708F}, Case{-200, 0, -1, 0}, Case{200, 200, 1, 1}}) {
    CHECK(elementwise::Silu::value(c.x) == Approx(c.silu).margin(1e-6));
    CHECK(elementwise::Tanh::value(c.x) == Approx(c.tanh).margin(1e-6));
    CHECK(elementwise::Sigmoid::value(c.x) == Approx(c.sigmoid).margin(1e-6));
    CHECK(std::isfinite(elementwise::Silu::gradient(c.x, 1)));
  }
}

TEST_CASE("a flattened image gives a dense layer the same columns, whatever lies between") {
  Sequential model(Conv2d(4, 3), Flatten(), Dense(5));
  check(model, {2, 5, 4, 2}, "conv, flatten, dense");
}

TEST_CASE("cross entropy equals its definition, and its gradient finite differences") {
  for (const double smoothing : {0.0, 0.1}) {
    const TensorDesc desc{Shape{4, 6}, DType::float32, {}};
    LossBench loss(SoftmaxCrossEntropy(smoothing), desc);
    const Buffer outputs_memory = Buffer::host(desc.bytes());
    const Tensor outputs(desc, outputs_memory.data());
    fill(outputs, 5, 3.0F);
    std::vector<std::int32_t> labels{1, 0, 5, 3};
    std::vector<float> weights{1, 0.5F, 1, 0};
    const Tensor target{std::span(labels)}, weight{std::span(weights)};
    CpuStream stream;
    const auto run = [&] {
      StepControl control;
      const Pass pass{.stream = stream, .weights = &weight, .loss_scale = 0.25F, .control = &control, .on_ready = {}};
      loss.run(outputs, target, pass);
      return control;
    };
    double expected = 0;
    for (std::size_t n = 0; n < 4; ++n) {
      const auto row = outputs.as<float>().subspan(n * 6, 6);
      double sum = 0;
      for (const float x : row) sum += std::exp(double{x});
      for (std::size_t c = 0; c < 6; ++c) {
        const double wanted = smoothing / 6 + (static_cast<std::int32_t>(c) == labels[n] ? 1 - smoothing : 0);
        expected -= weights[n] * wanted * (row[c] - std::log(sum));
      }
    }
    CHECK(run().loss == Approx(expected).epsilon(1e-6));
    CHECK(run().weight == 2.5);
    StepControl control;
    const Pass pass{.stream = stream, .weights = &weight, .loss_scale = 0.25F, .control = &control, .on_ready = {}};
    const Tensor gradient = loss.run(outputs, target, pass);
    const std::vector<float> d(gradient.as<float>().begin(), gradient.as<float>().end());
    for (std::size_t i = 0; i < d.size(); ++i) {
      float& x = outputs.as<float>()[i];
      const float before = x;
      x = before + 0x1p-8F;
      const double up = run().loss;
      x = before - 0x1p-8F;
      const double down = run().loss;
      x = before;
      CHECK(d[i] == Approx(0.25 * (up - down) * 0x1p7).margin(1e-4));
    }
  }
}

TEST_CASE("mean squared error equals its definition, and its gradient finite differences") {
  for (const std::int64_t columns : {1, 3}) {
    const double unit = 2.5;
    const TensorDesc desc{Shape{4, columns}, DType::float32, {}};
    LossBench loss(MeanSquaredError(unit), desc);
    const Buffer outputs_memory = Buffer::host(desc.bytes()), target_memory = Buffer::host(desc.bytes());
    const Tensor outputs(desc, outputs_memory.data()), target(desc, target_memory.data());
    fill(outputs, 5, 3.0F);
    fill(target, 6, 3.0F);
    const auto x = outputs.as<float>(), y = target.as<float>();
    y.back() = std::nanf("");  // of a row that only fills up the batch
    std::vector<float> weights{1, 0.5F, 1, 0};
    const Tensor weight{std::span(weights)};
    CpuStream stream;
    StepControl control;
    const auto pass_with = [&](StepControl& sums) {
      return Pass{.stream = stream, .weights = &weight, .loss_scale = 0.25F, .control = &sums, .on_ready = {}};
    };
    const auto run = [&] {
      StepControl sums;
      loss.run(outputs, target, pass_with(sums));
      return sums;
    };
    double squares = 0, distances = 0;
    for (std::size_t i = 0; i < 3 * static_cast<std::size_t>(columns); ++i) {
      const double difference = double{x[i]} - y[i], share = weights[i / static_cast<std::size_t>(columns)];
      squares += share * difference * difference / static_cast<double>(columns);
      distances += share * std::abs(difference) / static_cast<double>(columns);
    }
    CHECK(run().loss == Approx(unit * unit * squares));
    CHECK(run().metric == Approx(unit * distances));
    CHECK(run().weight == 2.5);
    const Tensor gradient = loss.run(outputs, target, pass_with(control));
    const std::vector<float> d(gradient.as<float>().begin(), gradient.as<float>().end());
    for (std::size_t i = 0; i < d.size(); ++i) {
      const float before = x[i];
      x[i] = before + 0x1p-6F;
      const double up = run().loss;
      x[i] = before - 0x1p-6F;
      const double down = run().loss;
      x[i] = before;
      CHECK(d[i] == Approx(0.25 * (up - down) * 0x1p5 / (unit * unit)).margin(1e-4));
    }
    const Tensor flat(TensorDesc{Shape{4}, DType::float32, {}}, target_memory.data());
    if (columns == 1)
      CHECK_NOTHROW(loss.run(outputs, flat, pass_with(control)));
    else
      CHECK_THROWS_AS(loss.run(outputs, flat, pass_with(control)), InputError);
  }
  for (const double unit : {0.0, -1.0, std::nan("")}) CHECK_THROWS_AS(MeanSquaredError(unit), InputError);
}

TEST_CASE("ten equal outputs cost ln 10, and a label that is none is refused") {
  const TensorDesc desc{Shape{1, 10}, DType::float32, {}};
  LossBench loss(SoftmaxCrossEntropy(), desc);
  const Buffer outputs = Buffer::host(desc.bytes());
  std::vector<std::int32_t> label{3};
  std::vector<float> one{1};
  const Tensor target{std::span(label)}, weight{std::span(one)};
  CpuStream stream;
  StepControl control;
  const Pass pass{.stream = stream, .weights = &weight, .control = &control, .on_ready = {}};
  loss.run(Tensor(desc, outputs.data()), target, pass);
  CHECK(control.loss == Approx(std::log(10.0)).epsilon(1e-6));
  label[0] = 10;
  CHECK_THROWS(loss.run(Tensor(desc, outputs.data()), target, pass));
}
