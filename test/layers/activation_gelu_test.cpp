#include <ronda/layers/elementwise.hpp>

#include "support/catch.hpp"

#include <utility>

using namespace ronda;

TEST_CASE("GELU has PyTorch's values") {
  const std::pair<float, float> values[] = {{-3, -0.00404969F},  {-1, -0.15865526F}, {-0.5F, -0.15426877F}, {0, 0},
                                            {0.5F, 0.34573123F}, {1, 0.84134474F},   {2, 1.95449974F},      {10, 10}};
  for (const auto& [x, y] : values) CHECK(elementwise::Gelu::value(x) == Approx(y).margin(1e-6));
}
