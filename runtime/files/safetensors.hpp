#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <ronda/runtime/core/shape.hpp>
#include <ronda/runtime/files/file_sum.hpp>

namespace ronda {

/// A tensor of a file: float32, row-major.
struct NamedTensor {
  std::string name;
  Shape shape;
  std::vector<float> values;  ///< shape.count()
};

/// A safetensors file (https://github.com/huggingface/safetensors, "Format"): 8 bytes with the length of a JSON header,
/// the header, and the tensors' bytes back to back, all little-endian.
struct Safetensors {
  std::vector<NamedTensor> tensors;             ///< in the order of their bytes
  std::map<std::string, std::string> metadata;  ///< the header's `__metadata__`
};

/// Throws InputError that names file, tensor, and what is wrong: nothing of a damaged file is accepted, nor any type
/// but F32.
[[nodiscard]] Safetensors read_safetensors(const std::filesystem::path& path);

/// Whole or not at all. Returns the sum of the bytes that were given to the file system. Throws InputError where the
/// file cannot be created, ResourceError where it cannot be written.
FileSum write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                          const std::map<std::string, std::string>& metadata = {});

}  // namespace ronda
