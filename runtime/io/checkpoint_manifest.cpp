#include <ronda/runtime/io/checkpoint_manifest.hpp>
#include <ronda/runtime/io/detail/json.hpp>
#include <ronda/runtime/io/whole_file.hpp>

namespace ronda {
namespace {

using Json = nlohmann::ordered_json;  // in the order in which people read it

constexpr const char* manifest_format = "ronda-checkpoint";
constexpr const char* part_format = "ronda-checkpoint-part";
constexpr std::size_t most_bytes_of_part = std::size_t{16} << 20;

/// Numbers alone: matrices are not kept from epoch to epoch.
Json to_json(const std::vector<MetricValue>& metrics) {
  Json list = Json::array();
  for (const MetricValue& value : metrics)
    if (value.is_number())
      list.push_back({{"name", value.metric.name}, {"share", value.metric.share}, {"value", value.number()}});
  return list;
}

/// The metric is called accuracy, whatever it is: a reader of an earlier version knows it so.
Json to_json(const EpochReport& epoch) {
  Json json = {{"epoch", epoch.epoch},           {"epochs", epoch.epochs},
               {"train_loss", epoch.train_loss}, {"train_accuracy", epoch.train_metric},
               {"test_loss", epoch.test_loss},   {"test_accuracy", epoch.test_metric},
               {"evaluated", epoch.evaluated},   {"seconds", epoch.seconds},
               {"samples", epoch.samples}};
  if (epoch.validated) {
    json["validation_loss"] = epoch.validation_loss;
    json["validation_accuracy"] = epoch.validation_metric;
  }
  if (!epoch.test_metrics.empty()) json["test_metrics"] = to_json(epoch.test_metrics);
  if (!epoch.validation_metrics.empty()) json["validation_metrics"] = to_json(epoch.validation_metrics);
  return json;
}

Json to_json(const CheckpointPart& part) {
  return {{"file", part.file},
          {"bytes", part.sum.bytes},
          {"hash", part.sum.hash},
          {"tensors", part.tensors},
          {"per_rank", part.per_rank}};
}

MetricValue metric_from(const JsonObject& object) {
  MetricValue value{{}, {0}};
  object.get("name", value.metric.name).get("share", value.metric.share).get("value", value.values.front());
  return value;
}

EpochReport epoch_from(const JsonObject& object) {
  EpochReport epoch;
  object.get("epoch", epoch.epoch)
      .get("epochs", epoch.epochs)
      .get("train_loss", epoch.train_loss)
      .get("train_accuracy", epoch.train_metric)
      .get("test_loss", epoch.test_loss)
      .get("test_accuracy", epoch.test_metric)
      .get("evaluated", epoch.evaluated)
      .get("seconds", epoch.seconds)
      .get("samples", epoch.samples);
  epoch.validated = object.has("validation_loss");
  if (epoch.validated)
    object.get("validation_loss", epoch.validation_loss).get("validation_accuracy", epoch.validation_metric);
  if (object.has("test_metrics")) object.get_list("test_metrics", epoch.test_metrics, metric_from);
  if (object.has("validation_metrics")) object.get_list("validation_metrics", epoch.validation_metrics, metric_from);
  return epoch;
}

CheckpointPart part_from(const JsonObject& object) {
  CheckpointPart part;
  object.get("file", part.file)
      .get("bytes", part.sum.bytes)
      .get("hash", part.sum.hash)
      .get("tensors", part.tensors)
      .get("per_rank", part.per_rank);
  return part;
}

/// Of the largest jobs: tens of thousands of ranks, hundreds of thousands of epochs.
constexpr JsonLimits manifest_limits{.bytes = std::size_t{256} << 20, .values = std::size_t{1} << 22};

/// Throws where the file is none of `format`.
void check_format(const JsonObject& object, const char* format) {
  object.require_format<ManifestVersionError>(format, CheckpointManifest::version,
                                              "read it with the Ronda that wrote it");
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
  if (!m.skipped_batches.empty()) json["skipped_batches"] = m.skipped_batches;
  if (!m.averaged.empty()) json["averaged"] = m.averaged;
  json["environment"] = m.environment;
  json["picks"] = m.picks;
  json["plan"] = m.plan;
  json["current"] = to_json(m.current);
  json["weight"] = m.weight;
  json["history"] = list_json(m.history);
  json["parts"] = list_json(m.parts);
  if (!m.hooks.empty()) json["hooks"] = m.hooks;
  json["metric"] = {{"name", m.metric.name}, {"share", m.metric.share}};
  if (!m.metadata.empty()) json["metadata"] = m.metadata;
  return sealed(json);
}

CheckpointManifest parse_manifest(const std::string& text, const std::filesystem::path& path) {
  const nlohmann::json json = parse_sealed(text, path, manifest_limits);
  const JsonObject object(json, path);
  check_format(object, manifest_format);
  CheckpointManifest m;
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
      .get("weight", m.weight)
      .get_list("history", m.history, epoch_from)
      .get_list("parts", m.parts, part_from);
  m.current = epoch_from(object.object("current"));
  if (object.has("skipped_batches")) object.get("skipped_batches", m.skipped_batches);
  if (object.has("averaged")) object.get("averaged", m.averaged);
  if (object.has("hooks")) object.get("hooks", m.hooks);
  m.metric = {"accuracy", true};
  if (object.has("metric")) object.object("metric").get("name", m.metric.name).get("share", m.metric.share);
  if (object.has("metadata")) object.get("metadata", m.metadata);
  return m;
}

CheckpointManifest read_manifest(const std::filesystem::path& path, Storage& storage) {
  require_regular(path);
  return parse_manifest(storage.read(path, manifest_limits.bytes), path);
}

void write_manifest(const std::filesystem::path& path, const CheckpointManifest& manifest, Storage& storage) {
  write_text(path, manifest_text(manifest), storage);
}

CheckpointPart read_part(const std::filesystem::path& path, Storage& storage) {
  const nlohmann::json json = parse_sealed(storage.read(path, most_bytes_of_part), path);
  const JsonObject object(json, path);
  check_format(object, part_format);
  return part_from(object.object("part"));
}

void write_part(const std::filesystem::path& path, const CheckpointPart& part, Storage& storage) {
  write_text(path, sealed({{"format", part_format}, {"version", CheckpointManifest::version}, {"part", to_json(part)}}),
             storage);
}

std::string manifest_summary(const CheckpointManifest& manifest, const std::filesystem::path& folder) {
  Json json = {{"folder", folder.string()}};
  json.update(progress_json(manifest));
  std::uint64_t bytes = 0;
  for (const auto& part : manifest.parts) bytes += part.sum.bytes;
  json["bytes"] = bytes;
  json["history"] = list_json(manifest.history);
  json["parts"] = list_json(manifest.parts);
  return json.dump(2, ' ', true, Json::error_handler_t::replace);  // names of files may be no text
}

}  // namespace ronda
