#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ronda/core/parallel.hpp>

namespace ronda {

/// The partition of a parameter in file layout. The whole is (outer, extent, inner), row-major; each part has a range,
/// possibly empty, of the middle axis.
struct ParameterSlices {
  int axis = 0;  ///< axis of the parameter's shape: the middle axis, or with it the outer one
  std::int64_t outer = 1, extent = 1, inner = 1;
  std::vector<Range> parts;

  /// Elements of a part.
  [[nodiscard]] std::size_t count(std::size_t part) const noexcept {
    return static_cast<std::size_t>(outer * inner) * parts[part].size();
  }
  /// Copies a part out of the whole, or into it, both row-major.
  void take(std::span<const float> whole, std::size_t part, std::span<float> taken) const;
  void put(std::span<const float> taken, std::size_t part, std::span<float> whole) const;
};

}  // namespace ronda
