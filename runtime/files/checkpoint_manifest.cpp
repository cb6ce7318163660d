#include <ronda/runtime/files/checkpoint_manifest.hpp>
#include <ronda/runtime/files/detail/json.hpp>
#include <ronda/runtime/files/whole_file.hpp>

#include <limits>

namespace ronda {
namespace {

using Json = nlohmann::ordered_json;  // in the order in which people read it

constexpr const char* manifest_format = "ronda-checkpoint";
constexpr const char* part_format = "ronda-checkpoint-part";

Json to_json(const EpochReport& epoch) {
  return {{"epoch", epoch.epoch},           {"epochs", epoch.epochs},
          {"train_loss", epoch.train_loss}, {"train_accuracy", epoch.train_accuracy},
          {"test_loss", epoch.test_loss},   {"test_accuracy", epoch.test_accuracy},
          {"evaluated", epoch.evaluated},   {"seconds", epoch.seconds},
          {"samples", epoch.samples}};
}

Json to_json(const CheckpointPart& part) {
  return {{"file", part.file},
          {"bytes", part.sum.bytes},
          {"hash", part.sum.hash},
          {"tensors", part.tensors},
          {"per_rank", part.per_rank}};
}

/// Takes values out of an object; knows the file for errors.
class Object {
 public:
  Object(const nlohmann::json& json, const std::filesystem::path& path) : json_(json), path_(path) {}

  template <class T>
  const Object& get(const char* key, T& value) const {
    try {
      const nlohmann::json& found = json_.at(key);
      if constexpr (std::is_same_v<T, double>)  // what is not finite was written as null
        value = found.is_null() ? std::numeric_limits<double>::quiet_NaN() : found.get<double>();
      else
        found.get_to(value);
    } catch (const nlohmann::json::exception& error) {
      throw InputError(path_.string() + ": its \"" + key + "\" is missing or of the wrong type (" + error.what() + ")");
    }
    return *this;
  }
  template <class T, class Read>
  const Object& get_list(const char* key, std::vector<T>& values, Read read) const {
    nlohmann::json list;
    get(key, list);
    for (const auto& each : list) values.push_back(read(Object(each, path_)));
    return *this;
  }

 private:
  const nlohmann::json& json_;
  const std::filesystem::path& path_;
};

EpochReport epoch_from(const Object& object) {
  EpochReport epoch;
  object.get("epoch", epoch.epoch)
      .get("epochs", epoch.epochs)
      .get("train_loss", epoch.train_loss)
      .get("train_accuracy", epoch.train_accuracy)
      .get("test_loss", epoch.test_loss)
      .get("test_accuracy", epoch.test_accuracy)
      .get("evaluated", epoch.evaluated)
      .get("seconds", epoch.seconds)
      .get("samples", epoch.samples);
  return epoch;
}

CheckpointPart part_from(const Object& object) {
  CheckpointPart part;
  object.get("file", part.file)
      .get("bytes", part.sum.bytes)
      .get("hash", part.sum.hash)
      .get("tensors", part.tensors)
      .get("per_rank", part.per_rank);
  return part;
}

void check_format(const nlohmann::json& json, const char* format, const std::filesystem::path& path) {
  if (!json.is_object() || json.value("format", nlohmann::json()) != format)
    throw InputError(path.string() + ": expected \"format\": \"" + format + "\"");
  if (const auto version = json.value("version", nlohmann::json()); version != CheckpointManifest::version)
    throw ManifestVersionError(path.string() + ": expected version " + std::to_string(CheckpointManifest::version) +
                               ", found " + version.dump() + "; read it with the Ronda that wrote it");
}

Json progress_json(const CheckpointManifest& m) {
  return {{"application", m.application},
          {"ronda", m.ronda},
          {"step", m.step},
          {"epoch", m.epoch},
          {"step_in_epoch", m.step_in_epoch},
          {"updates", m.updates},
          {"samples", m.samples},
          {"train_seconds", m.train_seconds},
          {"last_loss", m.last_loss},
          {"audited", m.audited},
          {"ranks", m.ranks},
          {"hosts", m.hosts},
          {"options", m.options}};
}

template <class T>
Json list_json(const std::vector<T>& values) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(to_json(value));
  return list;
}

}  // namespace

std::string manifest_text(const CheckpointManifest& m) {
  Json json = {{"format", manifest_format}, {"version", CheckpointManifest::version}};
  json.update(progress_json(m));
  json["counters"] = m.counters;
  json["environment"] = m.environment;
  json["picks"] = m.picks;
  json["plan"] = m.plan;
  json["current"] = to_json(m.current);
  json["weight"] = m.weight;
  json["history"] = list_json(m.history);
  json["parts"] = list_json(m.parts);
  return sealed(json);
}

CheckpointManifest parse_manifest(const std::string& text, const std::filesystem::path& path) {
  const nlohmann::json json = parse_sealed(text, path);
  check_format(json, manifest_format, path);
  CheckpointManifest m;
  nlohmann::json current;
  const Object object(json, path);
  object.get("application", m.application)
      .get("ronda", m.ronda)
      .get("step", m.step)
      .get("epoch", m.epoch)
      .get("step_in_epoch", m.step_in_epoch)
      .get("updates", m.updates)
      .get("samples", m.samples)
      .get("train_seconds", m.train_seconds)
      .get("last_loss", m.last_loss)
      .get("audited", m.audited)
      .get("ranks", m.ranks)
      .get("hosts", m.hosts)
      .get("options", m.options)
      .get("counters", m.counters)
      .get("environment", m.environment)
      .get("picks", m.picks)
      .get("plan", m.plan)
      .get("current", current)
      .get("weight", m.weight)
      .get_list("history", m.history, epoch_from)
      .get_list("parts", m.parts, part_from);
  m.current = epoch_from(Object(current, path));
  return m;
}

CheckpointManifest read_manifest(const std::filesystem::path& path) { return parse_manifest(read_text(path), path); }

void write_manifest(const std::filesystem::path& path, const CheckpointManifest& manifest) {
  write_text(path, manifest_text(manifest));
}

CheckpointPart read_part(const std::filesystem::path& path) {
  const nlohmann::json json = parse_sealed(read_text(path), path);
  check_format(json, part_format, path);
  CheckpointPart part;
  nlohmann::json content;
  Object(json, path).get("part", content);
  return part_from(Object(content, path));
}

void write_part(const std::filesystem::path& path, const CheckpointPart& part) {
  write_text(path,
             sealed({{"format", part_format}, {"version", CheckpointManifest::version}, {"part", to_json(part)}}));
}

std::string manifest_summary(const CheckpointManifest& manifest, const std::filesystem::path& folder) {
  Json json = {{"folder", folder.string()}};
  json.update(progress_json(manifest));
  std::uint64_t bytes = 0;
  for (const auto& part : manifest.parts) bytes += part.sum.bytes;
  json["bytes"] = bytes;
  json["history"] = list_json(manifest.history);
  json["parts"] = list_json(manifest.parts);
  return json.dump(2, ' ', true);
}

}  // namespace ronda
