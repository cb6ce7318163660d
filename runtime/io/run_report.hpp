#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ronda {

/// The result of a supervised training, over all its starts.
struct RunReport {
  int status = 0;
  int starts = 0, failures = 0;
  double wall_seconds = 0;
  std::optional<std::uint64_t> steps;                      ///< steps of the training, including those before this run
  std::optional<double> useful_seconds;                    ///< time of this run in steps that a checkpoint saved
  std::vector<std::pair<double, std::string>> happenings;  ///< seconds since the beginning, and the event

  /// Share of the time in steps that a checkpoint saved; nullopt if no checkpoint was written.
  [[nodiscard]] std::optional<double> goodput() const {
    if (!useful_seconds || wall_seconds <= 0) return std::nullopt;
    return *useful_seconds / wall_seconds;
  }
};

/// Whether the file is a run report or empty, so that a new run may replace it.
[[nodiscard]] bool is_run_report(const std::filesystem::path& path);

/// Writes JSON. Throws InputError if the file cannot be created, ResourceError if it cannot be written.
void write_run_report(const std::filesystem::path& path, const RunReport& report);

}  // namespace ronda
