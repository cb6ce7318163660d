#include <ronda/runtime/core/hash.hpp>
#include <ronda/runtime/files/detail/json.hpp>

#include <set>
#include <vector>

namespace ronda {
namespace {

constexpr std::string_view seal = ",\n  \"hash\": \"";

std::string with_seal(std::string body) {
  const std::string hash = Hash().add(body).text();
  return std::move(body).append(seal).append(hash).append("\"\n}\n");
}

}  // namespace

std::string sealed(const nlohmann::ordered_json& object) {
  std::string text = object.dump(2, ' ', true);
  text.resize(text.size() - std::string_view("\n}").size());
  return with_seal(std::move(text));
}

nlohmann::json parse_sealed(const std::string& text, const std::filesystem::path& path) {
  const auto end = text.rfind(seal);
  if (end == std::string::npos || text != with_seal(text.substr(0, end)))
    throw InputError(path.string() + " is damaged or cut off: it does not have the hash that it was written with");
  return parse_json(text, path);
}

nlohmann::json parse_json(std::string_view text, const std::filesystem::path& path) {
  using Json = nlohmann::json;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw InputError(path.string() + ": key " + parsed.dump() + " comes twice");
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::parse_error& error) {  // its own text repeats the file's bytes, whatever they are
    throw InputError(path.string() + ": expected JSON, found something else at byte " + std::to_string(error.byte));
  }
}

}  // namespace ronda
