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

/// The names of the weights that are int8 in a file.
[[nodiscard]] std::vector<std::string> int8_weights(std::span<const NamedTensor> tensors);

/// Throws InputError where a scale beside them is not above zero and finite, or a zero not one of a byte's values.
/// @param source  their file, for messages
void require_scales(std::span<const NamedTensor> tensors, const std::filesystem::path& source);

/// What a predictor needs to compute with them: `options.rewrite`. Empty, which changes nothing, where there are none.
[[nodiscard]] std::function<Graph(Graph)> int8_rewrite(std::vector<std::string> weights);

/// A trained model with int8 weights (see layers/int8.hpp), as files have it. What has no int8 stays float32.
///
/// Computes the samples in float32, and takes the least and the most that each operation is given as the range of its
/// bytes.
/// @param tensors  of the model in float32
/// @param source   their file, for messages
/// @param samples  some of those that the model was trained on, all with the same fields
/// @param computed  is told after each batch how many samples were computed; empty: nobody is
/// Throws InputError where there is no sample, where a number of the tensors, or one that the model computes, is not
/// finite, where weights are int8 already, where the tensors are not the model's, and where it has nothing to quantise.
[[nodiscard]] std::vector<NamedTensor> quantize(const Layer& model, std::span<const NamedTensor> tensors,
                                                const std::filesystem::path& source,
                                                std::span<const Dataset* const> samples,
                                                const PredictorOptions& options = {},
                                                const std::function<void(std::size_t)>& computed = {});

}  // namespace ronda
