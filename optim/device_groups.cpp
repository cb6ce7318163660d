#include <ronda/core/error.hpp>
#include <ronda/optim/device_groups.hpp>

#include <algorithm>
#include <string>

namespace ronda {

DeviceGroups DeviceGroups::of(const Optimizer& optimizer, const OptimizerBindings& bindings, std::size_t count) {
  using namespace device_update;
  if (bindings.states.size() != optimizer.states().size())
    throw LogicError("optimizer " + std::string(optimizer.name()) + " needs " +
                     std::to_string(optimizer.states().size()) + " state arenas, " +
                     std::to_string(bindings.states.size()) + " were given");
  if (bindings.groups.size() >= nobody)
    throw LogicError(std::to_string(bindings.groups.size()) + " parameter groups are more than a device can count");
  DeviceGroups result;
  for (const auto& group : bindings.groups) {
    check_group(group);
    result.groups.push_back({group.rate_factor, group.weight_decay.value_or(optimizer.hyperparameters().weight_decay)});
  }
  constexpr auto elements = static_cast<std::size_t>(line);
  result.group_of_line.assign((count + elements - 1) / elements, nobody);
  std::size_t free = 0;
  for (const auto& segment : bindings.segments) {
    const std::size_t end = segment.offset + static_cast<std::size_t>(segment.desc.padded_count());
    if (segment.offset % elements != 0 || segment.offset < free || end > count ||
        segment.group >= bindings.groups.size() || segment.desc.dtype != DType::float32)
      throw LogicError("parameter " + segment.name + " does not fit into the optimizer's arena");
    free = end;
    if (bindings.groups[segment.group].frozen) continue;
    for (std::size_t at = segment.offset; at < end; at += elements)
      result.group_of_line[at / elements] = static_cast<std::uint16_t>(segment.group);
  }
  return result;
}

}  // namespace ronda
