#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ronda {

/// A plan as a file: all choices, and the environment that they are valid for. JSON:
///
///     {"format": "ronda-plan", "version": 1, "environment": {…}, "picks": {…}, "entries": […], "hash": "…"}
struct PlanFile {
  static constexpr int version = 1;  ///< readers refuse other versions: a new plan is cheap

  std::map<std::string, std::string>
      environment;                           ///< processor, library versions, ranks, threads: all that affects timings
  std::map<std::string, std::string> picks;  ///< question to name of the chosen candidate
  std::vector<std::string> entries;          ///< the plan as text, one line per element
  std::string hash;                          ///< hash of the resulting plan, 16 hexadecimal digits

  bool operator==(const PlanFile&) const = default;
};

/// Throws InputError with file and position if it is not a plan of this version.
[[nodiscard]] PlanFile read_plan(const std::filesystem::path& path);

/// Writes the complete file or nothing. Throws InputError if it cannot be created, ResourceError if it cannot be
/// written.
void write_plan(const std::filesystem::path& path, const PlanFile& plan);

/// The folder of plans for later runs of the user: $RONDA_CACHE_DIR, else $XDG_CACHE_HOME/ronda, else
/// $HOME/.cache/ronda; created if missing. nullopt if none is writable: every run then makes a new plan.
[[nodiscard]] std::optional<std::filesystem::path> cache_directory();

}  // namespace ronda
