#pragma once
#include <string>

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
/// What a pooling gives of images (N, C, H, W).
/// @param image  their shape as (N, H, W, C)
std::string pooled(const PoolSpec& spec, const Shape& image, const std::string& value, OnnxWriter& onnx);

}  // namespace onnx_operations
}  // namespace ronda
