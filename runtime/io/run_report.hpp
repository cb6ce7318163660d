#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ronda {

/// What a supervised training came to, over all its starts.
struct RunReport {
  int status = 0;
  int starts = 0, failures = 0;
  double wall_seconds = 0;
  std::optional<std::uint64_t> steps;                      ///< steps of the training, with those before this run
  std::optional<double> useful_seconds;                    ///< time of this run in steps that are saved
  std::vector<std::pair<double, std::string>> happenings;  ///< seconds since the beginning, and what

  /// Share of the time in steps that are saved; nullopt if none was ever saved.
  [[nodiscard]] std::optional<double> goodput() const {
    if (!useful_seconds || wall_seconds <= 0) return std::nullopt;
    return *useful_seconds / wall_seconds;
  }
};

/// Whether the file is such a report, or empty: what a further run may replace.
[[nodiscard]] bool is_run_report(const std::filesystem::path& path);

/// As JSON. Throws InputError where the file cannot be created, ResourceError where it cannot be written.
void write_run_report(const std::filesystem::path& path, const RunReport& report);

}  // namespace ronda
