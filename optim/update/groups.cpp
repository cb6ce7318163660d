#include <ronda/core/error.hpp>
#include <ronda/optim/update/groups.hpp>

#include <string>

namespace ronda::update_kernels {

std::vector<Group> groups_of(const Optimizer& optimizer, const OptimizerBindings& bindings) {
  if (bindings.groups.size() >= no_group)
    throw LogicError(std::to_string(bindings.groups.size()) + " parameter groups are more than can be counted");
  std::vector<Group> groups;
  for (const auto& group : bindings.groups) {
    check_group(group);
    groups.push_back({group.rate_factor, group.weight_decay.value_or(optimizer.hyperparameters().weight_decay)});
  }
  return groups;
}

std::vector<std::uint16_t> groups_of_lines(const OptimizerBindings& bindings, std::size_t count) {
  constexpr auto elements = static_cast<std::size_t>(line);
  std::vector<std::uint16_t> group_of_line((count + elements - 1) / elements, no_group);
  std::size_t free = 0;
  for (const auto& segment : bindings.segments) {
    const std::size_t end = segment.offset + static_cast<std::size_t>(segment.desc.padded_count());
    if (segment.offset % elements != 0 || segment.offset < free || end > count ||
        segment.group >= bindings.groups.size() || segment.desc.dtype != DType::float32)
      throw LogicError("parameter " + segment.name + " does not fit into the optimizer's arena");
    free = end;
    if (bindings.groups[segment.group].frozen) continue;
    for (std::size_t at = segment.offset; at < end; at += elements)
      group_of_line[at / elements] = static_cast<std::uint16_t>(segment.group);
  }
  return group_of_line;
}

}  // namespace ronda::update_kernels
