#pragma once
#include <filesystem>
#include <vector>

#include <ronda/runtime/io/checkpoint_manifest.hpp>
#include <ronda/runtime/io/safetensors.hpp>

namespace ronda {

/// Reads the model from a complete checkpoint: parameters and layer states, sorted by name. Layer states that differ
/// between ranks are averaged over the ranks, as before an evaluation. If the training keeps an average of the
/// parameters, returns that average, as `save` writes. Throws InputError.
/// @param all  also return the optimizer states, and both the parameters and their average, `NAME.ema`
[[nodiscard]] std::vector<NamedTensor> model_in(const std::filesystem::path& checkpoint,
                                                const CheckpointManifest& manifest, bool all);

}  // namespace ronda
