#include <ronda/runtime/io/detail/json.hpp>
#include <ronda/runtime/io/run_report.hpp>
#include <ronda/runtime/io/whole_file.hpp>

#include <cmath>

namespace ronda {
namespace {

using RunJson = nlohmann::ordered_json;

template <class Number>
RunJson or_null(const std::optional<Number>& number) {
  return number ? RunJson(*number) : RunJson();
}

}  // namespace

void read_summary(const std::filesystem::path& summary, RunReport& report) {
  try {
    const nlohmann::json json = parse_json(read_text(summary), summary);
    std::uint64_t steps = 0;
    double seconds = 0;
    JsonObject(json, summary).get("steps", steps).get("train_seconds", seconds);
    report.steps = steps;
    if (std::isfinite(seconds)) report.useful_seconds = seconds;
  } catch (const InputError&) {  // the job did not reach its end, or is no training application of ours
  }
}

void write_run_report(const std::filesystem::path& path, const RunReport& report) {
  RunJson happenings = RunJson::array();
  for (const auto& [seconds, text] : report.happenings) happenings.push_back({{"seconds", seconds}, {"text", text}});
  const RunJson json{{"status", report.status},
                     {"starts", report.starts},
                     {"failures", report.failures},
                     {"steps", or_null(report.steps)},
                     {"wall_seconds", report.wall_seconds},
                     {"useful_seconds", or_null(report.useful_seconds)},
                     {"goodput", or_null(report.goodput())},
                     {"happenings", std::move(happenings)}};
  write_text(path, whole_text(json));
}

}  // namespace ronda
