// The plain loops against finite differences: everything else is compared with the plain loops.
#include <ronda/layers/elementwise.hpp>

#include "support/gradient_probe.hpp"

#include <cmath>
#include <utility>

using namespace ronda;
using namespace ronda::test;

namespace {

void check(const Layer& layer, const Shape& shape, const std::string& what) {
  check_against_differences(what + " " + shape.text(), layer, shape);
}

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
