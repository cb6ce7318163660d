#pragma once
#include <memory>

#include <ronda/layers/primitives.hpp>

namespace ronda::test {

/// What layers of a half type compute: the plain loops in float32, on operands in that type, and all that they give
/// rounded to it; the loss likewise.
std::unique_ptr<Primitives> make_rounded_primitives(DType dtype);

}  // namespace ronda::test
