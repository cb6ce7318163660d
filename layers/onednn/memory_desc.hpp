#pragma once
#include <optional>

#include <ronda/core/tensor.hpp>
#include <ronda/layers/onednn/adapter.hpp>

/// Between Ronda's descriptions of tensors and oneDNN's. Both name axes by their place, but oneDNN's images are N, C,
/// H, W where Ronda's are (N, H, W, C); weights agree. Elements are float32 or bfloat16.
namespace ronda::onednn {

enum class Axes { image, weight };

/// Throws LogicError for a layout that oneDNN has no name for.
dnnl::memory::desc to_memory_desc(const TensorDesc& tensor, Axes axes);

/// Nothing where the library keeps the bytes in a way that a Layout cannot say (opaque, gaps between elements), or
/// elements of another type.
std::optional<TensorDesc> to_tensor_desc(const dnnl::memory::desc& memory, Axes axes);

/// A shape whose layout the library chooses.
dnnl::memory::desc any_layout(const Shape& shape, Axes axes, DType dtype);
/// A shape in row-major order: images as NHWC.
dnnl::memory::desc plain_layout(const Shape& shape, Axes axes, DType dtype);

/// As ronda::same_bytes: axes of extent 1 may lie in any order.
bool same_bytes(const dnnl::memory::desc& a, const dnnl::memory::desc& b);

}  // namespace ronda::onednn
