#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <ronda/runtime/core/error.hpp>

// For this room alone: not installed, so that its users need no JSON library.
namespace ronda {

/// Parses `text`, which is (part of) the file `path`. Unlike the library alone it refuses a key that comes twice in the
/// same object. Throws InputError.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::filesystem::path& path);

/// `object` as text whose last key, "hash", is the hash of all before it.
[[nodiscard]] std::string sealed(const nlohmann::ordered_json& object);

/// The inverse; `text` is the file `path`. Throws InputError where any byte is not as it was written.
[[nodiscard]] nlohmann::json parse_sealed(const std::string& text, const std::filesystem::path& path);

}  // namespace ronda
