#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <ronda/runtime/io/safetensors.hpp>

namespace ronda {

/// The model of a training's best epoch, after so many steps, beside its checkpoints: DIR/best-step-N.safetensors.
[[nodiscard]] std::filesystem::path best_model_path(const std::filesystem::path& directory, std::uint64_t step);
/// The step in the name of such a file; 0 where it is none.
[[nodiscard]] std::uint64_t step_of_best_model(const std::filesystem::path& path);
/// Those of a folder, sorted by step. Throws InputError where it cannot be read.
[[nodiscard]] std::vector<std::filesystem::path> list_best_models(const std::filesystem::path& directory);

/// With a hash of the tensors in its metadata. Throws as write_safetensors.
void write_best_model(const std::filesystem::path& path, std::vector<NamedTensor> tensors,
                      std::map<std::string, std::string> metadata);
/// Sorted by name. Throws InputError where the tensors are not those that were written.
[[nodiscard]] std::vector<NamedTensor> read_best_model(const std::filesystem::path& path);

}  // namespace ronda
