#include <ronda/layers/activations.hpp>
#include <ronda/layers/elementwise.hpp>

#include "layers/bench.hpp"
#include "support/catch.hpp"
#include "support/gradient_probe.hpp"

#include <cmath>

using namespace ronda;
using namespace ronda::test;

TEST_CASE("Mish has PyTorch's values and gradients, also where the square of e to the x is no float32") {
  struct Case {
    float x, value, gradient;
  };
  for (const Case& c :
       {Case{-3, -0.145647461F, -0.0933931145F}, Case{-1, -0.303401461F, 0.0592167559F},
        Case{-0.5F, -0.220743775F, 0.289510678F}, Case{0, 0, 0.6F}, Case{0.5F, 0.375245211F, 0.886424375F},
        Case{2, 1.94395896F, 1.06931793F}, Case{20, 20, 1}, Case{60, 60, 1}, Case{200, 200, 1}, Case{-200, 0, 0}}) {
    INFO(c.x);
    CHECK(elementwise::Mish::value(c.x) == Approx(c.value).margin(1e-6));
    CHECK(elementwise::Mish::gradient(c.x, 1) == Approx(c.gradient).margin(1e-6));
    CHECK(elementwise::Mish::gradient(c.x, -2) == Approx(-2 * c.gradient).margin(2e-6));
  }
  CHECK(std::isnan(elementwise::Mish::value(NAN)));
  CHECK(std::isnan(elementwise::Mish::gradient(NAN, 1)));
}

TEST_CASE("the layer Mish computes the function mish") {
  CHECK(Mish().kind() == elementwise::Mish::name);
  check_against_differences("mish", Sequential(Dense(6), Mish(), Dense(2)), {3, 5});
}
