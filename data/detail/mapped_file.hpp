#pragma once
#include <cstddef>
#include <filesystem>
#include <span>

#include <ronda/core/buffer.hpp>

namespace ronda {

/// The bytes of a file, to be read alone, mapped into memory: the system reads what is looked at, and shares it between
/// the ranks of a node. Throws InputError where it cannot be read or is empty. Whoever shortens the file meanwhile ends
/// the process (SIGBUS).
[[nodiscard]] Buffer map_file(const std::filesystem::path& path);

/// Has the system read this part of a mapped file, if it is not in memory, while the caller goes on. Otherwise each
/// page is waited for by itself, and much around it is read as well, which no one wants where samples are read in
/// random order. A hint, and never an error.
void read_ahead(std::span<const std::byte> part) noexcept;

}  // namespace ronda
