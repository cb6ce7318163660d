#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/host/algorithms/allreduce_row.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>

#include <array>
#include <utility>

namespace ronda {
namespace {

constexpr std::string_view automatic_name = "auto";

/// For tensors on GPUs.
constexpr std::array<std::pair<AllreduceAlgorithm, std::string_view>, 2> names_on_devices{
    {{AllreduceAlgorithm::nccl, "nccl"}, {AllreduceAlgorithm::staged, "staged"}}};

bool on_devices(AllreduceAlgorithm algorithm) noexcept {
  return algorithm == AllreduceAlgorithm::nccl || algorithm == AllreduceAlgorithm::staged;
}

std::string listed_names(std::optional<DeviceKind> device, std::string_view last) {
  return listed(
      allreduce_names(device), [](std::string_view name) { return name; }, last);
}

}  // namespace

std::vector<std::string_view> allreduce_names(std::optional<DeviceKind> device) {
  std::vector<std::string_view> names{automatic_name};
  if (device.value_or(DeviceKind::cpu) == DeviceKind::cpu)
    for (const AllreduceRow* row : allreduce_rows()) names.push_back(row->name);
  if (device.value_or(DeviceKind::cuda) != DeviceKind::cpu)
    for (const auto& [algorithm, name] : names_on_devices) names.push_back(name);
  return names;
}

AllreduceAlgorithm parse_allreduce(std::string_view name) {
  if (name == automatic_name) return AllreduceAlgorithm::automatic;
  for (const AllreduceRow* row : allreduce_rows())
    if (row->name == name) return row->algorithm;
  for (const auto& [algorithm, known] : names_on_devices)
    if (known == name) return algorithm;
  throw InputError("'" + std::string(name) + "' is not an allreduce: expected " + listed_names({}, " or "));
}

std::string_view name_of(AllreduceAlgorithm algorithm) noexcept {
  if (algorithm == AllreduceAlgorithm::automatic) return automatic_name;
  for (const auto& [known, name] : names_on_devices)
    if (known == algorithm) return name;
  const AllreduceRow* const row = find_row(algorithm);
  return row == nullptr ? "?" : row->name;
}

void require_fitting(AllreduceAlgorithm algorithm, DeviceKind device) {
  if (algorithm == AllreduceAlgorithm::automatic || on_devices(algorithm) == (device != DeviceKind::cpu)) return;
  const std::string name(name_of(algorithm));
  if (on_devices(algorithm))
    throw InputError("the allreduce '" + name + "' is for ranks on GPUs, and these are on CPUs; take " +
                     setting("device", "cuda") + ", or another " + setting("allreduce") + " (" +
                     listed_names(DeviceKind::cpu, ", ") + ")");
  throw InputError("the allreduce '" + name + "' is for ranks on CPUs, and these are on GPUs; take " +
                   setting("allreduce") + " " + listed_names(DeviceKind::cuda, " or "));
}

}  // namespace ronda
