#pragma once
#include <filesystem>

#include <ronda/core/buffer.hpp>

namespace ronda {

/// The bytes of a file, to be read alone, mapped into memory: the system reads what is looked at, and shares it between
/// the ranks of a node. Throws InputError where it cannot be read or is empty. Whoever shortens the file meanwhile ends
/// the process (SIGBUS).
[[nodiscard]] Buffer map_file(const std::filesystem::path& path);

}  // namespace ronda
