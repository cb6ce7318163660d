#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace ronda {

/// `1 step`, `2 steps`, `2 batches`, `2 epochs`.
[[nodiscard]] inline std::string counted(std::int64_t count, const std::string& noun) {
  const bool hisses = noun.ends_with("ch") && !noun.ends_with("epoch");
  return std::to_string(count) + " " + noun + (count == 1 ? "" : hisses ? "es" : "s");
}

/// 1536 bytes as `1.5 KiB`.
[[nodiscard]] std::string human_bytes(std::size_t bytes);

}  // namespace ronda
