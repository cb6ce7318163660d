#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/parameter.hpp>
#include <ronda/core/state.hpp>
#include <ronda/runtime/io/safetensors.hpp>

namespace ronda {

/// Sets all parameters, and what layers keep (`batch_norm1.running_mean`), from a safetensors file with PyTorch's names
/// and layouts. Throws InputError where one is missing, has another shape, or the file holds others. Whole numbers
/// (`num_batches_tracked`) may be missing, as in PyTorch: they count from where they are.
/// @param states  of the host; a file has none of Scope::per_rank, so these stay
void load_parameters(const std::filesystem::path& path, std::span<const Parameter> parameters,
                     std::span<const State> states = {});

/// The same from tensors that were read before, as of a checkpoint (see model_in).
/// @param source  their file, or folder, for messages
void load_parameters(std::span<const NamedTensor> tensors, const std::filesystem::path& source,
                     std::span<const Parameter> parameters, std::span<const State> states = {});

/// Parameters, and what layers keep, as files have them.
/// @param states  of the host; those of Scope::per_rank are left out
[[nodiscard]] std::vector<NamedTensor> tensors_of(std::span<const Parameter> parameters,
                                                  std::span<const State> states = {});

/// The inverse of load_parameters. Whole or not at all.
/// @param metadata  texts that are kept with them
void save_parameters(const std::filesystem::path& path, std::span<const Parameter> parameters,
                     std::span<const State> states = {}, const std::map<std::string, std::string>& metadata = {});

}  // namespace ronda
