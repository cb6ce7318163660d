#pragma once
#include <filesystem>
#include <span>

#include <ronda/core/parameter.hpp>
#include <ronda/core/state.hpp>

namespace ronda {

/// Sets all parameters, and what layers keep (`batch_norm1.running_mean`), from a safetensors file with PyTorch's names
/// and layouts. Throws InputError where one is missing, has another shape, or the file holds others. Whole numbers
/// (`num_batches_tracked`) may be missing, as in PyTorch: they count from where they are.
/// @param states  of the host; a file has none of Scope::per_rank, so these stay
void load_parameters(const std::filesystem::path& path, std::span<const Parameter> parameters,
                     std::span<const State> states = {});

/// The inverse. Whole or not at all.
void save_parameters(const std::filesystem::path& path, std::span<const Parameter> parameters,
                     std::span<const State> states = {});

}  // namespace ronda
