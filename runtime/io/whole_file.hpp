#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <ronda/runtime/io/storage.hpp>

namespace ronda {

/// Whether `path` exists. Throws InputError if that cannot be determined, as in a folder without search permission.
[[nodiscard]] bool is_there(const std::filesystem::path& path);

/// Throws InputError if `path` exists and is not a regular file, such as a pipe, where reading would block.
void require_regular(const std::filesystem::path& path);

/// Content of a whole file. Throws InputError if it does not exist, cannot be read, or has more than `most` bytes.
[[nodiscard]] std::string read_text(const std::filesystem::path& path, std::size_t most = std::size_t{16} << 20);

/// Writes a file with the content `text`, complete or not at all. Throws InputError if it cannot be created,
/// ResourceError if it cannot be written.
void write_text(const std::filesystem::path& path, std::string_view text, Storage& storage = file_system());

/// The size of a file, and the XXH3 hash of its bytes (`xxhsum -H3`), 16 hexadecimal digits.
struct FileSum {
  std::uint64_t bytes = 0;
  std::string hash;
  bool operator==(const FileSum&) const = default;
};

/// Reads the whole file, a piece at a time. Throws InputError if it cannot be read.
[[nodiscard]] FileSum sum_of(const std::filesystem::path& path);

}  // namespace ronda
