#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/host/algorithms/allreduce_row.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>

namespace ronda {
namespace {

struct Named {
  AllreduceAlgorithm algorithm;
  std::string_view name;
  DeviceKind device;
};

/// `auto` first, which is for any memory; those for GPUs last.
const std::vector<Named>& named() {
  static const std::vector<Named> all = [] {
    std::vector<Named> names{{AllreduceAlgorithm::automatic, "auto", DeviceKind::cpu}};
    for (const AllreduceRow* row : allreduce_rows()) names.push_back({row->algorithm, row->name, DeviceKind::cpu});
    names.push_back({AllreduceAlgorithm::nccl, "nccl", DeviceKind::cuda});
    names.push_back({AllreduceAlgorithm::staged, "staged", DeviceKind::cuda});
    return names;
  }();
  return all;
}

std::string listed(const std::vector<std::string_view>& names, std::string_view last) {
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i)
    list += std::string(i == 0 ? "" : i + 1 == names.size() ? last : ", ") + std::string(names[i]);
  return list;
}

}  // namespace

std::vector<std::string_view> allreduce_names(std::optional<DeviceKind> device) {
  std::vector<std::string_view> names;
  for (const Named& one : named())
    if (!device || one.device == *device || one.algorithm == AllreduceAlgorithm::automatic) names.push_back(one.name);
  return names;
}

AllreduceAlgorithm parse_allreduce(std::string_view name) {
  const auto found = std::ranges::find(named(), name, &Named::name);
  if (found != named().end()) return found->algorithm;
  throw InputError("'" + std::string(name) + "' is not an allreduce: expected " + listed(allreduce_names(), " or "));
}

std::string_view name_of(AllreduceAlgorithm algorithm) noexcept {
  const auto found = std::ranges::find(named(), algorithm, &Named::algorithm);
  return found == named().end() ? "?" : found->name;
}

void require_fitting(AllreduceAlgorithm algorithm, DeviceKind device) {
  if (algorithm == AllreduceAlgorithm::automatic) return;
  const auto found = std::ranges::find(named(), algorithm, &Named::algorithm);
  if (found == named().end()) throw LogicError("there is no allreduce of that number");
  if (found->device == device) return;
  const std::string name(found->name);
  if (found->device != DeviceKind::cpu)
    throw InputError("the allreduce '" + name +
                     "' is for ranks on GPUs, and these are on CPUs; take --device cuda, or another --allreduce (" +
                     listed(allreduce_names(DeviceKind::cpu), ", ") + ")");
  throw InputError("the allreduce '" + name + "' is for ranks on CPUs, and these are on GPUs; take --allreduce " +
                   listed(allreduce_names(DeviceKind::cuda), " or "));
}

}  // namespace ronda
