#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <ronda/layers/graph.hpp>
#include <ronda/runtime/onnx/onnx_writer.hpp>

namespace ronda {

/// Writes an operation, as it is in evaluation, and returns the name of the value that it gives. Throws InputError that
/// names it where it has no translation.
std::string translate(const GraphNode& node, OnnxWriter& onnx);

/// The same by kind: an operation has a translation where it is one of these.
namespace onnx_operations {

std::string translate(const DenseSpec& spec, OnnxWriter& onnx);
std::string translate(const ConvolutionSpec& spec, OnnxWriter& onnx);
std::string translate(const AttentionSpec& spec, OnnxWriter& onnx);

std::string translate(const PoolSpec& spec, OnnxWriter& onnx);
std::string translate(const LayerNormSpec& spec, OnnxWriter& onnx);
std::string translate(const BatchNormSpec& spec, OnnxWriter& onnx);

std::string translate(const ElementwiseSpec& spec, OnnxWriter& onnx);
std::string translate(const AddSpec& spec, OnnxWriter& onnx);
std::string translate(const ConcatSpec& spec, OnnxWriter& onnx);
std::string translate(const FlattenSpec& spec, OnnxWriter& onnx);
std::string translate(const DropoutSpec& spec, OnnxWriter& onnx);

std::string translate(const EmbeddingSpec& spec, OnnxWriter& onnx);
std::string translate(const PositionSpec& spec, OnnxWriter& onnx);

/// `value`, or its ReLU.
std::string activated(Activation activation, const std::string& value, OnnxWriter& onnx);
/// What a pooling gives of images (N, C, H, W), or of sequences (N, C, T).
/// @param shape  theirs as (N, H, W, C), or (N, T, C)
std::string pooled(const PoolSpec& spec, const Shape& shape, const std::string& value, OnnxWriter& onnx);
/// What `body` makes of the operation's input with its channels behind the samples, as ONNX's windows take it, in the
/// order of values. Images have it already.
template <class Body>
std::string channels_first(OnnxWriter& onnx, Body&& body) {
  if (onnx.input_shape().rank() != 3) return body(onnx.input());
  return onnx.transposed(body(onnx.transposed(onnx.input(), {0, 2, 1})), {0, 2, 1});
}
/// A number for each direction of windows: of sequences (N, T, C) the second alone.
[[nodiscard]] inline std::vector<std::int64_t> directions(const HeightWidth& pair, const Shape& shape) {
  if (shape.rank() == 3) return {pair.width};
  return {pair.height, pair.width};
}
/// Zeros: above and to the left, then below and to the right; of sequences before, then behind.
[[nodiscard]] inline std::vector<std::int64_t> pads(const HeightWidth& before, const HeightWidth& after,
                                                    const Shape& shape) {
  std::vector<std::int64_t> all = directions(before, shape), last = directions(after, shape);
  all.insert(all.end(), last.begin(), last.end());
  return all;
}

}  // namespace onnx_operations
}  // namespace ronda
