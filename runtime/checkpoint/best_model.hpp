#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <ronda/runtime/io/safetensors.hpp>

namespace ronda {

/// Path of the model of a training's best epoch, after `step` steps, in the folder of its checkpoints:
/// DIR/best-step-N.safetensors.
[[nodiscard]] std::filesystem::path best_model_path(const std::filesystem::path& directory, std::uint64_t step);
/// The step in the name of such a file; 0 for other names.
[[nodiscard]] std::uint64_t step_of_best_model(const std::filesystem::path& path);
/// Lists these files of a folder, sorted by step. Throws InputError if it cannot be read.
[[nodiscard]] std::vector<std::filesystem::path> list_best_models(const std::filesystem::path& directory);

/// Writes the tensors, with their hash in the metadata. Throws as write_safetensors does.
void write_best_model(const std::filesystem::path& path, std::vector<NamedTensor> tensors,
                      std::map<std::string, std::string> metadata);
/// Reads the tensors, sorted by name. Throws InputError if they do not match their hash.
[[nodiscard]] std::vector<NamedTensor> read_best_model(const std::filesystem::path& path);

}  // namespace ronda
