#include <ronda/layers/planner.hpp>
#include <ronda/runtime/core/error.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace ronda {

std::string Planner::next_name(std::string_view kind) {
  auto [entry, added] = counters_.try_emplace(std::string(kind), 0);
  return entry->first + std::to_string(++entry->second);
}

ParameterId Planner::parameter(ParameterRequest request) {
  for (const auto& other : parameters_)
    if (other.name == request.name) throw InputError("two parameters of the model are called " + request.name);
  parameters_.push_back(std::move(request));
  return ParameterId{static_cast<std::uint32_t>(parameters_.size() - 1)};
}

BufferId Planner::buffer(std::string owner, std::size_t bytes, Lifetime lifetime) {
  buffers_.push_back({std::move(owner), bytes, lifetime});
  return BufferId{static_cast<std::uint32_t>(buffers_.size() - 1)};
}

std::optional<TensorDesc> Planner::take_flattened() { return std::exchange(flattened_, std::nullopt); }

BufferPlan place_buffers(std::span<const BufferRequest> requests) {
  BufferPlan plan;
  std::array<std::size_t, 2> gradient_regions{};
  std::size_t gradients = 0;
  for (const auto& request : requests) {
    if (request.lifetime == Lifetime::scratch) plan.scratch_bytes = std::max(plan.scratch_bytes, request.bytes);
    if (request.lifetime != Lifetime::gradient) continue;
    std::size_t& region = gradient_regions[gradients++ % 2];
    region = std::max(region, request.bytes);
  }
  ArenaPlan arena;
  const std::size_t scratch = arena.reserve(plan.scratch_bytes);
  const std::array<std::size_t, 2> regions{arena.reserve(gradient_regions[0]), arena.reserve(gradient_regions[1])};
  plan.gradient_bytes = gradient_regions[0] + gradient_regions[1];
  gradients = 0;
  for (const auto& request : requests) {
    switch (request.lifetime) {
      case Lifetime::pass:
        plan.offsets.push_back(arena.reserve(request.bytes));
        plan.pass_bytes += request.bytes;
        break;
      case Lifetime::gradient: plan.offsets.push_back(regions[gradients++ % 2]); break;
      case Lifetime::scratch: plan.offsets.push_back(scratch); break;
    }
  }
  plan.bytes = arena.bytes();
  return plan;
}

}  // namespace ronda
