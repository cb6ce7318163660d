// What starts ranks, and how this process was started; what the build is made of; where it keeps things.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>

#include <ronda/collectives/fabric/mpi/mpi.hpp>
#include <ronda/collectives/launcher.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/optional_formats.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/runtime/io/plan_file.hpp>
#include <ronda/runtime/onnx/write_onnx.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include "mnist_application.hpp"
#include "finding.hpp"

namespace ronda::apps {
namespace {

namespace fs = std::filesystem;
using State = Finding::State;

/// Where PATH has `program`; empty where it has not.
fs::path find_program(const char* program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty() && ::access((fs::path(folder) / program).c_str(), X_OK) == 0) return fs::path(folder) / program;
  return {};
}

Finding mpirun() {
  const fs::path program = find_program("mpirun");
  if (!program.empty()) return {"mpirun", program};
  if (!find_program("srun").empty()) return {"mpirun", "not in PATH; srun is"};
  return {"mpirun", "not in PATH", State::off,
          "without one there is one rank alone: apt install openmpi-bin, or load a module"};
}

Finding start() {
  const Launcher launcher = Launcher::from_environment();
  if (launcher.size_variable == nullptr && std::getenv("SLURM_JOB_ID") != nullptr)
    return {"started", "in a Slurm batch script, alone: srun --mpi=pmix or mpirun start ranks"};
  const auto announced = AnnouncedProcesses::from_environment();
  if (!launcher.known && announced.variable != nullptr)
    return {"started",
            "alone, beside other processes (" + std::string(announced.variable) + ") that MPI does not reach",
            State::off, "mpirun or srun start ranks; RONDA_ALONE=1 lets this process train by itself"};
  if (launcher.size_variable == nullptr) return {"started", "alone"};
  const std::string by = std::string(launcher.size_variable).starts_with("SLURM") ? "srun" : "mpirun or srun";
  return {"started", "by " + by + ", as rank " + std::to_string(launcher.rank) + " of " +
                         std::to_string(launcher.size) +
                         (launcher.several_hosts ? ", on several hosts" : ", on one host")};
}

Finding root() {
  if (::geteuid() != 0) return {"user", "not root"};
  if (!mpi::library_name().starts_with("Open MPI")) return {"user", "root"};
  const auto told = [](const char* variable) { return std::getenv(variable) != nullptr; };
  if (told("OMPI_ALLOW_RUN_AS_ROOT") && told("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"))
    return {"user", "root, which mpirun was told is meant"};
  return {"user", "root", State::off,
          "Open MPI's mpirun refuses root: export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
}

Finding cache() {
  const auto folder = cache_directory();
  if (!folder)
    return {"cache", "no folder that can be written to", State::off,
            "what is best is timed anew in every run: set RONDA_CACHE_DIR to one, or HOME"};
  std::size_t files = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(*folder, ignored))
    files += entry.path().extension() == ".json" ? 1 : 0;
  return {"cache", folder->string() + ", " + counted(static_cast<std::int64_t>(files), "file") + " of what was timed"};
}

Finding data() {
  const fs::path folder = find_mnist();
  if (!folder.empty()) return {"MNIST", folder};
  return {"MNIST", "not beside this program", State::off, "name its folder: --data DIR"};
}

}  // namespace

Findings look_at_build() {
  Findings findings{{"Ronda", version() + (find_gpus().built ? ", built for CPUs and NVIDIA GPUs"
                                                             : ", built for CPUs, without CUDA")},
                    {"layers", make_onednn_primitives(1)->name()},
                    {"MPI", mpi::library_name()}};
  for (const OptionalFormat& format : optional_formats())
    if (!format.library.empty())
      findings.push_back({format.name, format.library});
    else
      findings.push_back({format.name, "this build cannot read such data", State::missing,
                          "install " + format.package + ", and configure and build Ronda anew"});
  if (const std::string version = onnx_library(); !version.empty())
    findings.push_back({"ONNX", version});
  else
    findings.push_back({"ONNX", "this build cannot export models", State::missing,
                        "install libonnx-dev and libprotobuf-dev, and configure and build Ronda anew"});
  return findings;
}

Findings look_at_launcher() { return {mpirun(), start(), root()}; }

Findings look_at_places() { return {cache(), data()}; }

}  // namespace ronda::apps
