#include <ronda/layers/elementwise.hpp>

#include "support/catch.hpp"

#include <cmath>

using namespace ronda;

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
