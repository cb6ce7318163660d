#include <ronda/runtime/io/detail/json.hpp>
#include <ronda/runtime/io/run_report.hpp>
#include <ronda/runtime/io/whole_file.hpp>

namespace ronda {
namespace {

using RunJson = nlohmann::ordered_json;

template <class Number>
RunJson or_null(const std::optional<Number>& number) {
  return number ? RunJson(*number) : RunJson();
}

}  // namespace

bool is_run_report(const std::filesystem::path& path) {
  try {
    const std::string text = read_text(path);
    if (text.empty()) return true;
    const auto json = parse_json(text, path);
    return json.is_object() && json.contains("starts") && json.contains("failures") && json.contains("happenings");
  } catch (const InputError&) {  // another file
    return false;
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
