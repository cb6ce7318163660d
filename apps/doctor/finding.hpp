#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace ronda::apps {

/// Something that a machine or a build has, or lacks.
struct Finding {
  enum class State {
    fine,
    off,      ///< training works, though not as well as it could
    missing,  ///< not there, and only some need it
    broken,   ///< training does not work
  };
  std::string subject, text;
  State state = State::fine;
  std::string remedy = {};  ///< of what is not fine
};

[[nodiscard]] std::string name_of(Finding::State state);

using Findings = std::vector<Finding>;

// What there is, each a part of the report. They look, and change nothing; only the cache's folder is made where it is
// missing, because whether it can be made shows in no other way.
[[nodiscard]] Findings look_at_build();
[[nodiscard]] Findings look_at_gpus();
[[nodiscard]] Findings look_at_machine();   ///< processor, cores, bfloat16, memory, /dev/shm, huge pages
[[nodiscard]] Findings look_at_launcher();  ///< MPI, Slurm, and how this process was started
[[nodiscard]] Findings look_at_places();    ///< cache, data

/// The first line of a file; empty where it cannot be read.
[[nodiscard]] std::string first_line(const std::filesystem::path& file);

}  // namespace ronda::apps
