#pragma once
#include <filesystem>
#include <span>

#include <ronda/core/parameter.hpp>

namespace ronda {

/// Sets all parameters from a safetensors file with PyTorch's names and layouts. Throws InputError where one is
/// missing, has another shape, or the file holds others.
void load_parameters(const std::filesystem::path& path, std::span<const Parameter> parameters);

/// The inverse. Whole or not at all.
void save_parameters(const std::filesystem::path& path, std::span<const Parameter> parameters);

}  // namespace ronda
