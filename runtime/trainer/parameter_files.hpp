#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/state.hpp>
#include <ronda/runtime/io/safetensors.hpp>

namespace ronda {

/// Sets all parameters and layer states (`batch_norm1.running_mean`) from a safetensors file with PyTorch's names and
/// layouts. Throws InputError if one is missing or has another shape, or the file holds others. Integer states
/// (`num_batches_tracked`) may be missing, as in PyTorch: they keep their values.
/// @param states  in host memory; files have no states with Scope::per_rank, so these are not changed
void load_parameters(const std::filesystem::path& path, std::span<const Parameter> parameters,
                     std::span<const State> states = {});

/// The same from tensors that were read earlier, for example from a checkpoint (see model_in).
/// @param source  their file or folder, for messages
void load_parameters(std::span<const NamedTensor> tensors, const std::filesystem::path& source,
                     std::span<const Parameter> parameters, std::span<const State> states = {});

/// Returns parameters and layer states in file layout.
/// @param states  in host memory; those with Scope::per_rank are left out
[[nodiscard]] std::vector<NamedTensor> tensors_of(std::span<const Parameter> parameters,
                                                  std::span<const State> states = {});

/// The inverse of load_parameters. Writes the file completely or not at all.
/// @param metadata  texts stored with the parameters
void save_parameters(const std::filesystem::path& path, std::span<const Parameter> parameters,
                     std::span<const State> states = {}, const std::map<std::string, std::string>& metadata = {});

}  // namespace ronda
