#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace ronda {

/// `1 step`, `2 steps`, `2 batches`.
[[nodiscard]] inline std::string counted(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : noun.ends_with("ch") ? "es" : "s");
}

/// 1536 bytes as `1.5 KiB`.
[[nodiscard]] std::string human_bytes(std::size_t bytes);

}  // namespace ronda
