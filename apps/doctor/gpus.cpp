#include <ronda/core/device_context.hpp>
#include <ronda/core/text.hpp>

#include "finding.hpp"
#include "libraries.hpp"

namespace ronda::apps {
namespace {

using State = Finding::State;

/// What a build for CPUs lacks of a GPU's is no fault.
Finding absent(const std::string& subject, const std::string& text, bool built, const std::string& remedy) {
  if (!built) return {subject, text + ", and not needed by this build, which is for CPUs"};
  return {subject, text, State::missing, remedy};
}

Finding driver(bool built) {
  const OptionalLibrary library = find_driver();
  const std::string module = first_line("/proc/driver/nvidia/version");
  if (library.version.empty() && module.empty())
    return absent("GPU driver", "none", built,
                  "only for GPUs: install NVIDIA's driver; in a container, docker run --gpus all");
  if (library.version.empty())
    return {"GPU driver", "the kernel has it, and libcuda.so.1 is not found", State::off,
            "in a container, docker run --gpus all; else put its folder in LD_LIBRARY_PATH"};
  Finding found{"GPU driver", "for CUDA " + library.version + (module.empty() ? "" : "; " + module)};
  if (built) return found;
  return {found.subject, found.text + "; this build is for CPUs", State::missing,
          "to train on the GPU: cmake --preset cuda"};
}

Findings devices(const GpuSurvey& survey) {
  Findings findings;
  for (std::size_t i = 0; i < survey.gpus.size(); ++i) {
    const Gpu& gpu = survey.gpus[i];
    findings.push_back({"GPU " + std::to_string(i), gpu.name + ", compute capability " + std::to_string(gpu.major) +
                                                        "." + std::to_string(gpu.minor) + ", " +
                                                        human_bytes(gpu.memory_bytes)});
  }
  if (!survey.built)
    findings.push_back({"GPUs", "not looked for: training is on the CPU"});
  else if (!survey.reason.empty())
    findings.push_back({"GPUs", "none to train on: " + survey.reason, State::missing, "training is on the CPU"});
  return findings;
}

Finding library(const std::string& name, const OptionalLibrary& found, const GpuSurvey& survey,
                const std::string& without) {
  if (!found.version.empty()) return {name, found.version};
  if (!survey.reason.empty())
    return absent(name, "not found" + (survey.built ? ": " + found.problem : ""), survey.built, without);
  return {name, "not found: " + found.problem, State::off, without};
}

}  // namespace

Findings look_at_gpus() {
  const GpuSurvey survey = find_gpus();
  Findings findings{driver(survey.built)};
  if (survey.built)
    findings.push_back({"CUDA runtime", survey.runtime_version > 0 ? cuda_version_text(survey.runtime_version)
                                                                   : "built in; not asked, for want of a driver"});
  for (Finding& finding : devices(survey)) findings.push_back(std::move(finding));
  const std::string for_gpus = "only for training on GPUs";
  findings.push_back(
      library("NCCL", find_nccl(), survey, "several GPUs then reduce through the host (--allreduce staged)"));
  findings.push_back(library("cuDNN", find_cudnn(), survey, for_gpus));
  findings.push_back(library("cuBLASLt", find_cublaslt(), survey, for_gpus));
  return findings;
}

}  // namespace ronda::apps
