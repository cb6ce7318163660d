#pragma once
#include <cstddef>

namespace ronda::onednn {

/// y = GELU(x), of each element by itself: its bits depend neither on its place nor on threads. 0 stays 0.
/// @param y  may be x
void gelu(const float* x, float* y, std::size_t count, int threads);

/// dx = dy · GELU'(x).
/// @param dx  apart from the others
void gelu_backward(const float* dy, const float* x, float* dx, std::size_t count, int threads);

}  // namespace ronda::onednn
