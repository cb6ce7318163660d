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
  /// What the job itself summed up in its summary: steps, and the seconds spent on those that count.
  std::optional<std::uint64_t> steps;
  std::optional<double> useful_seconds;
  std::vector<std::pair<double, std::string>> happenings;  ///< seconds since the beginning, and what

  /// The part of the time that went into steps which count; nothing where the job did not reach its end.
  [[nodiscard]] std::optional<double> goodput() const {
    if (!useful_seconds || wall_seconds <= 0) return std::nullopt;
    return *useful_seconds / wall_seconds;
  }
};

/// Takes steps and useful seconds over from a job's summary; leaves them where there is none, or none that can be read.
void read_summary(const std::filesystem::path& summary, RunReport& report);

/// As JSON. Throws InputError where the file cannot be created, ResourceError where it cannot be written.
void write_run_report(const std::filesystem::path& path, const RunReport& report);

}  // namespace ronda
