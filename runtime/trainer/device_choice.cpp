#include <ronda/runtime/core/enum_names.hpp>
#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/trainer/device_choice.hpp>

namespace ronda {
namespace {

constexpr EnumNames<DeviceChoice, 3> device_names{
    {{DeviceChoice::automatic, "auto"}, {DeviceChoice::cpu, "cpu"}, {DeviceChoice::cuda, "cuda"}}};

/// What the options ask for that the steps of a GPU do not do yet; null where that is nothing.
const char* beyond_gpus(const Communicator& communicator, const TrainingOptions& o) {
  if (communicator.size() > 1) return "several ranks";
  if (o.accumulate > 1) return "--accumulate";
  if (!o.checkpoint_dir.empty()) return "--checkpoint-dir";
  if (!o.resume_from.empty()) return "--resume-from";
  if (o.audit_every > 0) return "--audit-every";
  if (!o.faults.empty()) return "--inject";
  return nullptr;
}

std::shared_ptr<DeviceContext> gpu_of_rank(const Communicator& communicator, const TrainingOptions& options) {
  const GpuSurvey survey = find_gpus();
  if (!survey.reason.empty()) throw InputError("--device cuda: " + survey.reason + "; use --device cpu");
  if (const char* beyond = beyond_gpus(communicator, options))
    throw InputError("--device cuda: " + std::string(beyond) + " is not for GPUs in this version; use --device cpu");
  return make_cuda_context(communicator.topology().rank_on_node % static_cast<int>(survey.gpus.size()));
}

}  // namespace

DeviceChoice parse_device(std::string_view name) { return parse_name(device_names, name, "a device (--device)"); }
std::string_view name_of(DeviceChoice choice) noexcept { return find_name(device_names, choice); }

ComputeDevice choose_device(const Communicator& communicator, const TrainingOptions& options, int threads,
                            EventSink& sink) {
  std::shared_ptr<DeviceContext> context = make_cpu_context(threads);
  agree(communicator, [&] {
    if (options.device == DeviceChoice::cuda) context = gpu_of_rank(communicator, options);
  });
  if (options.device == DeviceChoice::automatic) {
    const GpuSurvey survey = find_gpus();
    const std::string why = survey.reason.empty()
                                ? "training on a GPU is new, and only done where --device cuda asks for it"
                                : survey.reason;
    if (survey.built)
      sink.on_note("computing on the processor: " + why);
    else
      sink.on_detail("computing on the processor: " + why);
  }
  return ComputeDevice::on(std::move(context));
}

}  // namespace ronda
