#include <ronda/runtime/io/detail/json.hpp>
#include <ronda/runtime/io/plan_file.hpp>
#include <ronda/runtime/io/whole_file.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace ronda {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> wanted_directory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  if (const auto own = variable("RONDA_CACHE_DIR"); !own.empty()) return own;
  if (const auto cache = variable("XDG_CACHE_HOME"); cache.is_absolute())
    return cache / "ronda";  // as its standard says
  if (const auto home = variable("HOME"); !home.empty()) return home / ".cache" / "ronda";
  return std::nullopt;
}

/// Questions and answers travel as lines.
void check_picks(const PlanFile& plan, const JsonObject& object) {
  const auto is_control = [](char c) { return c >= 0 && c < ' '; };
  for (const auto& [question, answer] : plan.picks)
    if (std::ranges::any_of(question, is_control) || std::ranges::any_of(answer, is_control))
      throw object.bad("picks", "texts of one line", shown(question) + ": " + shown(answer));
}

PlanFile parse_plan(const std::string& text, const fs::path& path) {
  const nlohmann::json json = parse_json(text, path);
  const JsonObject object(json, path);
  object.require_format("ronda-plan", PlanFile::version, "another version wrote it");
  PlanFile plan;
  object.get("environment", plan.environment)
      .get("picks", plan.picks)
      .get("entries", plan.entries)
      .get("hash", plan.hash);
  check_picks(plan, object);
  if (plan.hash.size() != 16 || plan.hash.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw object.bad("hash", "16 hexadecimal digits", shown(plan.hash));
  if (json.size() != 6) throw InputError(path.string() + ": it has keys that this version does not know");
  return plan;
}

}  // namespace

PlanFile read_plan(const fs::path& path) {
  try {
    return parse_plan(read_text(path), path);
  } catch (const InputError& error) {
    throw InputError(error.message() + "; remove the file, and the next run writes a new plan");
  }
}

void write_plan(const fs::path& path, const PlanFile& plan) {
  const nlohmann::ordered_json json = {{"format", "ronda-plan"},          {"version", PlanFile::version},
                                       {"environment", plan.environment}, {"picks", plan.picks},
                                       {"entries", plan.entries},         {"hash", plan.hash}};
  write_text(path, whole_text(json));
}

std::optional<fs::path> cache_directory() {
  auto directory = wanted_directory();
  if (!directory) return std::nullopt;
  std::error_code ignored;
  fs::create_directories(*directory, ignored);
  const bool usable = fs::is_directory(*directory, ignored) && ::access(directory->c_str(), W_OK | X_OK) == 0;
  return usable ? directory : std::nullopt;
}

}  // namespace ronda
