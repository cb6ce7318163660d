#include <ronda/runtime/files/detail/json.hpp>
#include <ronda/runtime/files/run_report.hpp>
#include <ronda/runtime/files/whole_file.hpp>

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
    report.steps = json.at("steps").get<std::uint64_t>();
    report.useful_seconds = json.at("train_seconds").get<double>();
  } catch (const InputError&) {                 // the job did not reach its end
  } catch (const nlohmann::json::exception&) {  // or is no training application of ours
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
  write_text(path, json.dump(2) + "\n");
}

}  // namespace ronda
