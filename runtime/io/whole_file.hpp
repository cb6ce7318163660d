#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace ronda {

/// Whether there is anything at `path`. Throws InputError where that cannot be known, as in a folder that one may not
/// look into.
[[nodiscard]] bool is_there(const std::filesystem::path& path);

/// Throws InputError where there is something at `path` that is no file, such as a pipe, which would be waited for.
void require_regular(const std::filesystem::path& path);

/// Content of a whole file. Throws InputError where there is none, it cannot be read, or it has more than `most` bytes.
[[nodiscard]] std::string read_text(const std::filesystem::path& path, std::size_t most = std::size_t{16} << 20);

/// `text` becomes the file, whole or not at all. Throws InputError where it cannot be created, ResourceError where it
/// cannot be written.
void write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace ronda
