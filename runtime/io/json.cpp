#include <ronda/core/hash.hpp>
#include <ronda/runtime/io/detail/json.hpp>

#include <limits>

namespace ronda {
namespace {

constexpr std::string_view seal = ",\n  \"hash\": \"";

std::string with_seal(std::string body) {
  const std::string hash = Hash().add(body).text();
  return std::move(body).append(seal).append(hash).append("\"\n}\n");
}

/// Builds the value that the library's parser tells of piece by piece, within limits.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(const std::filesystem::path& path, const JsonLimits& limits) : path_(path), limits_(limits) {}

  [[nodiscard]] nlohmann::json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) override { return false; }  // no text has any
  bool start_object(std::size_t) override { return open(nlohmann::json::object()); }
  bool start_array(std::size_t) override { return open(nlohmann::json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    const auto [at, fresh] = open_.back()->get_ref<nlohmann::json::object_t&>().emplace(name, nullptr);
    if (!fresh) throw InputError(path_.string() + ": key " + shown(name) + " comes twice");
    member_ = &at->second;
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int out_of_range = 406;  // the library's own text repeats the file's bytes, whatever they are
    throw InputError(path_.string() + ": expected JSON, found " +
                     (error.id == out_of_range ? "a number beyond all numbers" : "something else") + " at byte " +
                     std::to_string(at));
  }

 private:
  bool add(nlohmann::json value) {
    place(std::move(value));
    return true;
  }
  bool open(nlohmann::json value) {
    if (open_.size() == limits_.depth)
      throw InputError(path_.string() + ": more than " + std::to_string(limits_.depth) +
                       " lists or objects within one another");
    open_.push_back(&place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  nlohmann::json& place(nlohmann::json value) {
    if (++values_ > limits_.values)
      throw InputError(path_.string() + ": more than " + std::to_string(limits_.values) + " values");
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_object()) return *member_ = std::move(value);
    auto& list = open_.back()->get_ref<nlohmann::json::array_t&>();
    return list.emplace_back(std::move(value));
  }

  const std::filesystem::path& path_;
  const JsonLimits& limits_;
  nlohmann::json root_;
  std::vector<nlohmann::json*> open_;  ///< lists and objects that are not at their end, the innermost last
  nlohmann::json* member_ = nullptr;   ///< of the innermost object, whose key was read last
  std::size_t values_ = 0;
};

}  // namespace

std::string whole_text(const nlohmann::ordered_json& object) {
  return object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string sealed(const nlohmann::ordered_json& object) {
  std::string text = object.dump(2, ' ', true, nlohmann::json::error_handler_t::replace);
  text.resize(text.size() - std::string_view("\n}").size());
  return with_seal(std::move(text));
}

nlohmann::json parse_sealed(const std::string& text, const std::filesystem::path& path, const JsonLimits& limits) {
  const auto end = text.rfind(seal);
  if (end == std::string::npos || text != with_seal(text.substr(0, end)))
    throw InputError(path.string() + " is damaged or cut off: it does not have the hash that it was written with");
  return parse_json(text, path, limits);
}

nlohmann::json parse_json(std::string_view text, const std::filesystem::path& path, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    throw InputError(path.string() + ": expected at most " + std::to_string(limits.bytes >> 20) +
                     " MiB of JSON, found " + std::to_string(text.size()) + " bytes");
  Builder builder(path, limits);
  nlohmann::json::sax_parse(text, &builder);
  return builder.take();
}

std::string shown(const nlohmann::json& value) {
  constexpr std::size_t enough = 60;
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  std::string text = value.is_string() ? nlohmann::json(value.get_ref<const std::string&>().substr(0, enough))
                                             .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)
                                       : value.dump();
  return text;
}

JsonObject::JsonObject(const nlohmann::json& json, const std::filesystem::path& path, std::string_view key)
    : json_(json), path_(path) {
  if (json.is_object()) return;
  if (!key.empty()) throw bad(key, "an object", shown(json));
  throw InputError(path.string() + ": expected an object, found " + shown(json));
}

InputError JsonObject::bad(std::string_view key, const std::string& expected, const std::string& found) const {
  return InputError(path_.string() + ": \"" + std::string(key) + "\": expected " + expected + ", found " + found);
}

const nlohmann::json& JsonObject::at(std::string_view key) const {
  const auto found = json_.find(key);
  if (found == json_.end()) throw InputError(path_.string() + ": \"" + std::string(key) + "\" is missing");
  return *found;
}

const nlohmann::json& JsonObject::list(const nlohmann::json& json, std::string_view key) const {
  if (!json.is_array()) throw bad(key, "a list", shown(json));
  return json;
}

void JsonObject::read(const nlohmann::json& json, std::string_view key, bool& value) const {
  if (!json.is_boolean()) throw bad(key, "true or false", shown(json));
  value = json.get<bool>();
}

void JsonObject::read(const nlohmann::json& json, std::string_view key, double& value) const {
  if (!json.is_number() && !json.is_null()) throw bad(key, "a number", shown(json));
  value = json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

void JsonObject::read(const nlohmann::json& json, std::string_view key, std::string& value) const {
  if (!json.is_string()) throw bad(key, "a text", shown(json));
  value = json.get_ref<const std::string&>();
}

}  // namespace ronda
