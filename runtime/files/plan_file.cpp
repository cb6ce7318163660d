#include <ronda/runtime/files/detail/json.hpp>
#include <ronda/runtime/files/plan_file.hpp>
#include <ronda/runtime/files/whole_file.hpp>

#include <unistd.h>

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

}  // namespace

PlanFile read_plan(const fs::path& path) {
  const nlohmann::json json = parse_json(read_text(path), path);
  const auto bad = [&](const std::string& what) {
    return InputError(path.string() + " is no plan: " + what + "; remove the file, and the next run writes a new one");
  };
  if (!json.is_object() || json.value("format", nlohmann::json()) != "ronda-plan")
    throw bad("expected \"format\": \"ronda-plan\"");
  if (const auto version = json.value("version", nlohmann::json()); version != PlanFile::version)
    throw bad("expected version " + std::to_string(PlanFile::version) + ", found " + version.dump());
  PlanFile plan;
  const auto read = [&](const char* key, auto& value) {
    try {
      json.at(key).get_to(value);
    } catch (const nlohmann::json::exception& error) {
      throw bad(std::string("its \"") + key + "\" is missing or of the wrong type (" + error.what() + ")");
    }
  };
  read("environment", plan.environment);
  read("picks", plan.picks);
  read("entries", plan.entries);
  read("hash", plan.hash);
  if (plan.hash.size() != 16 || plan.hash.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw bad("expected a hash of 16 hexadecimal digits, found '" + plan.hash + "'");
  if (json.size() != 6) throw bad("it has keys that this version does not know");
  return plan;
}

void write_plan(const fs::path& path, const PlanFile& plan) {
  const nlohmann::ordered_json json = {{"format", "ronda-plan"},          {"version", PlanFile::version},
                                       {"environment", plan.environment}, {"picks", plan.picks},
                                       {"entries", plan.entries},         {"hash", plan.hash}};
  write_text(path, json.dump(2) + "\n");
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
