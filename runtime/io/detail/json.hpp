#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <ronda/core/error.hpp>

// For this room alone: not installed, so that its users need no JSON library.
namespace ronda {

/// What a file may be: hostile ones are refused before they take memory. A value takes about a hundred bytes of it.
struct JsonLimits {
  std::size_t bytes = std::size_t{16} << 20;
  std::size_t values = std::size_t{1} << 18;  ///< numbers, texts, lists and objects
  std::size_t depth = 16;                     ///< lists and objects within one another
};

/// Parses `text`, which is (part of) the file `path`. Unlike the library alone it refuses a key that comes twice in the
/// same object, and a number beyond double. InputError is all that it throws.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::filesystem::path& path,
                                        const JsonLimits& limits = {});

/// `object` as the text of a file. Bytes that are not UTF-8, as a path may have, are replaced.
[[nodiscard]] std::string whole_text(const nlohmann::ordered_json& object);

/// `object` as text whose last key, "hash", is the hash of all before it.
[[nodiscard]] std::string sealed(const nlohmann::ordered_json& object);

/// The inverse; `text` is the file `path`. Throws InputError where any byte is not as it was written.
[[nodiscard]] nlohmann::json parse_sealed(const std::string& text, const std::filesystem::path& path,
                                          const JsonLimits& limits = {});

/// A value as it is shown in a message: short, and without what a terminal would act on.
[[nodiscard]] std::string shown(const nlohmann::json& value);

/// Takes values out of an object of a file. Whatever is missing, of another type or out of range is an InputError that
/// names the file, the key, what was expected and what was found.
class JsonObject {
 public:
  /// @param json, path  outlive this object. Throws where `json` is no object; `key` is where it stands.
  JsonObject(const nlohmann::json& json, const std::filesystem::path& path, std::string_view key = {});

  /// Reads a bool, a whole number of T's range, a double (null is NaN: what is not finite is written so), a text, a
  /// list or a map of these.
  template <class T>
  const JsonObject& get(std::string_view key, T& value) const {
    read(at(key), key, value);
    return *this;
  }
  [[nodiscard]] bool has(std::string_view key) const { return json_.contains(key); }
  [[nodiscard]] JsonObject object(std::string_view key) const { return {at(key), path_, key}; }
  /// A list of objects, each of which `make` makes a value.
  template <class T, class Read>
  const JsonObject& get_list(std::string_view key, std::vector<T>& values, Read make) const {
    for (const auto& each : list(at(key), key)) values.push_back(make(JsonObject(each, path_, key)));
    return *this;
  }
  /// Throws where "format" and "version" are not these; a version of another number is a VersionError.
  template <class VersionError = InputError>
  void require_format(std::string_view format, int version, std::string_view remedy) const {
    if (const auto found = json_.find("format"); found == json_.end() || *found != format)
      throw InputError(path_.string() + ": expected \"format\": \"" + std::string(format) + "\"");
    const auto found = json_.find("version");
    if (found == json_.end() || *found != version)
      throw VersionError(path_.string() + ": expected version " + std::to_string(version) + ", found " +
                         (found == json_.end() ? "none" : shown(*found)) + "; " + std::string(remedy));
  }
  [[nodiscard]] InputError bad(std::string_view key, const std::string& expected, const std::string& found) const;

 private:
  [[nodiscard]] const nlohmann::json& at(std::string_view key) const;
  [[nodiscard]] const nlohmann::json& list(const nlohmann::json& json, std::string_view key) const;

  void read(const nlohmann::json& json, std::string_view key, bool& value) const;
  void read(const nlohmann::json& json, std::string_view key, double& value) const;
  void read(const nlohmann::json& json, std::string_view key, std::string& value) const;
  template <std::integral T>
  void read(const nlohmann::json& json, std::string_view key, T& value) const {
    const auto take = [&](auto number) {
      if (std::in_range<T>(number)) return value = static_cast<T>(number), true;
      return false;
    };
    const bool taken = json.is_number_unsigned()  ? take(json.get<std::uint64_t>())
                       : json.is_number_integer() ? take(json.get<std::int64_t>())
                                                  : false;
    if (!taken)
      throw bad(key,
                "a whole number from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
                    std::to_string(std::numeric_limits<T>::max()),
                shown(json));
  }
  template <class T>
  void read(const nlohmann::json& json, std::string_view key, std::vector<T>& values) const {
    values.clear();
    for (const auto& each : list(json, key)) read(each, key, values.emplace_back());
  }
  template <class T, class Compare>
  void read(const nlohmann::json& json, std::string_view key, std::map<std::string, T, Compare>& values) const {
    if (!json.is_object()) throw bad(key, "an object", shown(json));
    values.clear();
    for (const auto& [name, each] : json.items()) read(each, key, values[name]);
  }

  const nlohmann::json& json_;
  const std::filesystem::path& path_;
};

}  // namespace ronda
