#include <ronda/optim/kernel_updater.hpp>

namespace ronda {

using update_kernels::line;
using update_kernels::no_parameter;

std::vector<update_kernels::Segment> segments_of(const Optimizer& optimizer, const OptimizerBindings& bindings) {
  std::vector<update_kernels::Segment> segments;
  for (const auto& segment : bindings.segments) {
    const ParameterGroup& group = bindings.groups.at(segment.group);
    check_group(group);
    segments.push_back({static_cast<std::int64_t>(segment.offset), segment.desc.padded_count(), group.rate_factor,
                        group.weight_decay.value_or(optimizer.weight_decay()), segment.desc.shape.rank(),
                        group.pruned});
  }
  return segments;
}

std::vector<std::uint16_t> parameters_of_lines(const OptimizerBindings& bindings, std::size_t count) {
  constexpr auto elements = static_cast<std::size_t>(line);
  if (bindings.segments.size() >= no_parameter)
    throw LogicError(std::to_string(bindings.segments.size()) + " parameters are more than can be counted");
  std::vector<std::uint16_t> parameter_of_line((count + elements - 1) / elements, no_parameter);
  std::size_t free = 0;
  for (std::size_t i = 0; i < bindings.segments.size(); ++i) {
    const ArenaSegment& segment = bindings.segments[i];
    const std::size_t end = segment.offset + static_cast<std::size_t>(segment.desc.padded_count());
    if (segment.offset % elements != 0 || segment.offset < free || end > count ||
        segment.group >= bindings.groups.size() || segment.desc.dtype != DType::float32)
      throw LogicError("parameter " + segment.name + " does not fit into the optimizer's arena");
    free = end;
    if (bindings.groups[segment.group].frozen) continue;
    for (std::size_t at = segment.offset; at < end; at += elements)
      parameter_of_line[at / elements] = static_cast<std::uint16_t>(i);
  }
  return parameter_of_line;
}

}  // namespace ronda
