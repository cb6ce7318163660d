#pragma once
#include <cstdint>
#include <string>

namespace ronda {

/// `1 step`, `2 steps`.
[[nodiscard]] inline std::string counted(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace ronda
