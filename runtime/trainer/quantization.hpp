#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <ronda/data/dataset.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/trainer/predictor.hpp>

namespace ronda {

/// Returns the names of the int8 weights in a file.
[[nodiscard]] std::vector<std::string> int8_weights(std::span<const NamedTensor> tensors);

/// Throws InputError if a scale of these weights is not positive and finite, or a zero point is not a value of a byte.
/// @param source  file of the tensors, for messages
void require_scales(std::span<const NamedTensor> tensors, const std::filesystem::path& source);

/// Returns the graph rewrite with which a predictor computes int8 weights, for `options.rewrite`. Empty (no change) if
/// `weights` is empty.
[[nodiscard]] std::function<Graph(Graph)> int8_rewrite(std::vector<std::string> weights);

/// Converts a trained model to int8 weights (see layers/int8.hpp), in file layout. Tensors without an int8 form stay
/// float32.
///
/// Computes the samples in float32, and uses the minimum and maximum of each operation's inputs as the range of its
/// bytes.
/// @param tensors  the float32 model
/// @param source   file of the tensors, for messages
/// @param samples  some of the training samples, all with the same fields
/// @param computed  called after each batch with the number of samples computed; may be empty
/// Throws InputError if there are no samples, a number in the tensors or computed by the model is not finite, weights
/// are already int8, the tensors do not match the model, or the model has nothing to quantise.
[[nodiscard]] std::vector<NamedTensor> quantize(const Layer& model, std::span<const NamedTensor> tensors,
                                                const std::filesystem::path& source,
                                                std::span<const Dataset* const> samples,
                                                const PredictorOptions& options = {},
                                                const std::function<void(std::size_t)>& computed = {});

}  // namespace ronda
