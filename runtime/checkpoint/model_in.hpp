#pragma once
#include <filesystem>
#include <vector>

#include <ronda/runtime/io/checkpoint_manifest.hpp>
#include <ronda/runtime/io/safetensors.hpp>

namespace ronda {

/// What a whole checkpoint holds of the model: parameters and what layers keep, sorted by name. Of what each rank has
/// changed by its own samples, the means over the ranks, as before they evaluate. Of a training with an average of the
/// parameters, that average, as what `save` writes. Throws InputError.
/// @param all  what the optimizer keeps too, and the parameters as well as their average, `NAME.ema`
[[nodiscard]] std::vector<NamedTensor> model_in(const std::filesystem::path& checkpoint,
                                                const CheckpointManifest& manifest, bool all);

}  // namespace ronda
