#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace ronda {

/// The size of a file, and the XXH3 hash of its bytes (`xxhsum -H3`), 16 hexadecimal digits.
struct FileSum {
  std::uint64_t bytes = 0;
  std::string hash;
  bool operator==(const FileSum&) const = default;
};

/// Reads the whole file, a piece at a time. Throws InputError if it cannot be read.
[[nodiscard]] FileSum sum_of(const std::filesystem::path& path);

}  // namespace ronda
