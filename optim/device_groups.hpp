#pragma once
#include <cstdint>
#include <vector>

#include <ronda/optim/device_arithmetic.hpp>
#include <ronda/optim/optimizer.hpp>

namespace ronda {

/// Whose each line of 16 elements of the arena is, as a device looks it up, and what each group multiplies.
struct DeviceGroups {
  std::vector<std::uint16_t> group_of_line;
  std::vector<device_update::Group> groups;

  /// Throws LogicError for segments that are not aligned, overlap or do not fit.
  static DeviceGroups of(const Optimizer& optimizer, const OptimizerBindings& bindings, std::size_t count);
};

}  // namespace ronda
