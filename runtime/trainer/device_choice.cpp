#include <ronda/core/error.hpp>
#include <ronda/core/names.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/runtime/strategy/replica/platform.hpp>
#include <ronda/runtime/trainer/device_choice.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace ronda {
namespace {

constexpr EnumNames<DeviceChoice, 3> device_names{
    {{DeviceChoice::automatic, "auto"}, {DeviceChoice::cpu, "cpu"}, {DeviceChoice::cuda, "cuda"}}};

/// The device of this kind with this rank's number on its node. Collective.
std::shared_ptr<DeviceContext> device_of_rank(const Communicator& communicator, const PlatformRow& row, int threads) {
  const DeviceSurvey survey = row.survey();
  const std::string refusal = refusal_of_gpus(communicator.gather_texts(survey.reason), communicator.topology().hosts);
  if (!refusal.empty())  // all ranks know it
    throw as_agreed(InputError(setting("device", row.name) + ": " + refusal + "; use " + setting("device", "cpu")));
  std::shared_ptr<DeviceContext> context;
  agree(communicator, [&] {
    context = row.context(communicator.topology().rank_on_node % static_cast<int>(survey.devices), threads);
  });
  return context;
}

}  // namespace

DeviceChoice parse_device(std::string_view name) {
  return parse_name(device_names, name, "a device (" + setting("device") + ")");
}
std::string_view name_of(DeviceChoice choice) noexcept { return find_name(device_names, choice); }

ComputeDevice choose_device(const Communicator& communicator, const TrainingOptions& options, int threads,
                            EventSink& sink) {
  if (options.device == DeviceChoice::cuda)
    return ComputeDevice::on(device_of_rank(communicator, platform_row(DeviceKind::cuda), threads));
  if (options.device == DeviceChoice::automatic) {
    const DeviceSurvey survey = platform_row(DeviceKind::cuda).survey();
    const Message why = survey.reason.empty() ? "training on a GPU is new, and only done where " +
                                                    setting("device", "cuda") + " asks for it"
                                              : survey.reason;
    sink.on_message(survey.built ? Severity::note : Severity::detail, "computing on the processor: " + why);
  }
  return ComputeDevice::on(make_cpu_context(threads));
}

void require_for_gpus(const TrainingOptions& options) {
  const bool spoils_gradients =
      std::ranges::any_of(options.faults, [](const Fault& fault) { return fault.kind == FaultKind::flip_gradient; });
  if (spoils_gradients)
    throw InputError(setting("device", "cuda") + ": " + setting("faults", "flip-gradient") +
                     " is not for GPUs in this version; use " + setting("device", "cpu"));
}

void require_for_processor(const TrainingOptions& options) {
  if (options.precision != Precision::mixed_bfloat16 || options.emulate_dtype) return;
  const BFloat16Support support = bfloat16_support();
  if (!support.fast)
    throw InputError(setting("precision", "mixed_bfloat16") + ": " + support.text +
                     ", and it would be slower than float32; " + support.remedy + ", or emulate it with " +
                     setting("emulate_dtype"));
}

std::string refusal_of_gpus(std::span<const std::string> reasons, const HostNames& hosts) {
  constexpr std::size_t most_named = 4;
  std::vector<std::size_t> without;
  for (std::size_t rank = 0; rank < reasons.size(); ++rank)
    if (!reasons[rank].empty()) without.push_back(rank);
  if (without.empty()) return {};
  const std::string& first = reasons[without[0]];
  const bool alike = std::ranges::all_of(reasons, [&](const std::string& reason) { return reason == first; });
  if (alike) return first;
  std::string names;
  for (std::size_t i = 0; i < std::min(without.size(), most_named); ++i)
    names += (i == 0 ? "rank " : ", rank ") + std::to_string(without[i]) + " on " + hosts[without[i]];
  if (without.size() > most_named) names += " and " + std::to_string(without.size() - most_named) + " more";
  return names + (without.size() == 1 ? " has" : " have") + " no GPU to use, others have: " + first;
}

}  // namespace ronda
