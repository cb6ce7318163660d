#pragma once
#include <string>

#include <ronda/layers/check_gradients.hpp>
#include <ronda/layers/layers.hpp>

#include "support/catch.hpp"

namespace ronda::test {

/// A layer's gradients against finite differences.
inline void check_against_differences(const std::string& what, const Layer& layer, const Shape& input,
                                      const GradientCheckOptions& options = {}) {
  const GradientReport report = compare_gradients(layer, input, options);
  INFO(what << ": " << report.wrong << " of " << report.smooth << " differ, " << report.tried << " tried; "
            << report.first_wrong);
  CHECK(report.wrong == 0);
  CHECK(report.smooth * 3 >= report.tried);
}

}  // namespace ronda::test
