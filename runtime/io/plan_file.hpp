#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ronda {

/// A plan as a file: everything that was chosen, and where it holds. JSON:
///
///     {"format": "ronda-plan", "version": 1, "environment": {…}, "picks": {…}, "entries": […], "hash": "…"}
struct PlanFile {
  static constexpr int version = 1;  ///< a reader refuses others: a plan is cheap to make anew

  std::map<std::string, std::string>
      environment;                           ///< processor, library versions, ranks, threads: what timings depend on
  std::map<std::string, std::string> picks;  ///< question to the name of the candidate that won
  std::vector<std::string> entries;          ///< the plan in words, a line each
  std::string hash;                          ///< of the plan that came out, 16 hexadecimal digits

  bool operator==(const PlanFile&) const = default;
};

/// Throws InputError that names the file and the place where it is no plan of this version.
[[nodiscard]] PlanFile read_plan(const std::filesystem::path& path);

/// Whole or not at all. Throws InputError where the file cannot be created, ResourceError where it cannot be written.
void write_plan(const std::filesystem::path& path, const PlanFile& plan);

/// Where plans are kept for the user's next runs: $RONDA_CACHE_DIR, else $XDG_CACHE_HOME/ronda, else
/// $HOME/.cache/ronda; made where it is missing. Nothing where there is no such place to write to: then every run
/// chooses anew.
[[nodiscard]] std::optional<std::filesystem::path> cache_directory();

}  // namespace ronda
