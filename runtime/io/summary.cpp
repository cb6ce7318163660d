#include <ronda/runtime/io/detail/json.hpp>
#include <ronda/runtime/io/summary.hpp>
#include <ronda/runtime/io/whole_file.hpp>

#include <nlohmann/json.hpp>

namespace ronda {
namespace {

using Json = nlohmann::ordered_json;  // in the order in which people read it

/// `test_loss` and `test_accuracy`, or whatever the metric is.
void add_results(Json& json, const std::string& data, const Metric& metric, double loss, double value) {
  json[data + "_loss"] = loss;
  if (!metric.name.empty()) json[data + "_" + metric.name] = value;
}

/// Without the zeros at its end.
std::vector<std::uint64_t> up_to_last(std::vector<std::uint64_t> counts) {
  while (!counts.empty() && counts.back() == 0) counts.pop_back();
  return counts;
}

Json to_json(const MetricValue& value) {
  if (value.is_number()) return value.number();
  Json rows = Json::array();
  const auto width = static_cast<std::size_t>(value.shape.without_batch().count());
  for (std::size_t i = 0; i < value.values.size(); i += width)
    rows.push_back(std::vector<double>(&value.values[i], &value.values[i] + width));
  return rows;
}

/// @param matrices  whether values are written that are more than a number
void add_metrics(Json& json, const std::string& key, const std::vector<MetricValue>& metrics, bool matrices) {
  Json values = Json::object();
  for (const MetricValue& value : metrics)
    if (matrices || value.is_number()) values[value.metric.name] = to_json(value);
  if (!values.empty()) json[key] = std::move(values);
}

Json to_json(const Summary::Epoch& epoch, const Summary& s) {
  Json json = {{"epoch", epoch.epoch}};
  add_results(json, "train", s.metric, epoch.train_loss, epoch.train_metric);
  if (s.validates) add_results(json, "validation", s.metric, epoch.validation_loss, epoch.validation_metric);
  add_metrics(json, "validation_metrics", epoch.validation_metrics, false);
  add_results(json, "test", s.metric, epoch.test_loss, epoch.test_metric);
  add_metrics(json, "test_metrics", epoch.test_metrics, false);
  json["seconds"] = epoch.seconds;
  return json;
}

Json to_json(const Summary::Stage& stage) {
  return {{"begins", stage.begins},
          {"parameters", stage.parameters},
          {"memory", stage.memory},
          {"computing_seconds", stage.computing_seconds},
          {"waiting_seconds", stage.waiting_seconds},
          {"bubble", stage.bubble},
          {"predicted_bubble", stage.predicted_bubble}};
}

Json to_json(const Summary& s) {
  Json history = Json::array();
  for (const auto& epoch : s.epoch_history) history.push_back(to_json(epoch, s));
  Json options = Json::object();
  for (const auto& [name, value] : s.options)
    options[name] = options.contains(name) ? options[name].get<std::string>() + ", " + value : value;
  Json json = {{"application", s.application},
               {"version", s.version},
               {"world_size", s.world_size},
               {"hosts", s.hosts},
               {"device", s.device},
               {"dtype", s.dtype},
               {"global_batch_size", s.global_batch_size},
               {"epochs", s.epochs},
               {"steps", s.steps},
               {"samples", s.samples},
               {"parameters", s.parameters},
               {"gradient_bytes", s.gradient_bytes},
               {"train_seconds", s.train_seconds},
               {"samples_per_second", s.samples_per_second},
               {"step_microseconds", {{"median", s.step_microseconds.median}, {"p99", s.step_microseconds.p99}}},
               {"final_train_loss", s.final_train_loss}};
  add_results(json, "test", s.metric, s.test_loss, s.test_metric);
  add_metrics(json, "test_metrics", s.test_metrics, true);
  json.update(Json{{"parameter_hash", s.parameter_hash},
                   {"allreduce",
                    {{"algorithm", s.allreduce.algorithm},
                     {"compression", s.allreduce.compression},
                     {"bytes_per_step", s.allreduce.bytes_per_step},
                     {"buckets", s.allreduce.buckets},
                     {"exposed_seconds", s.allreduce.exposed_seconds}}},
                   {"checkpoint",
                    {{"written", s.checkpoint.written},
                     {"resumed_step", s.checkpoint.resumed_step},
                     {"exposed_seconds", s.checkpoint.exposed_seconds}}},
                   {"guard",
                    {{"audits", s.guard.audits},
                     {"divergences", s.guard.divergences},
                     {"audit_seconds", s.guard.audit_seconds},
                     {"nonfinite_steps", s.guard.nonfinite_steps},
                     {"overflow_steps", s.guard.overflow_steps},
                     {"rollbacks", s.guard.rollbacks}}},
                   {"startup_seconds", s.startup_seconds},
                   {"plan_hash", s.plan_hash},
                   {"options", std::move(options)}});
  if (s.synchronisations.count > 0)
    json["synchronisations"] = {{"count", s.synchronisations.count},
                                {"sent_bytes", s.synchronisations.sent_bytes},
                                {"waited_seconds", s.synchronisations.waited_seconds},
                                {"total_seconds", s.synchronisations.total_seconds}};
  if (s.servers.count > 0)
    json["servers"] = {{"count", s.servers.count},
                       {"pushed_bytes", s.servers.pushed_bytes},
                       {"pulled_bytes", s.servers.pulled_bytes},
                       {"dropped", s.servers.dropped}};
  if (!s.servers.staleness.empty()) json["servers"]["staleness"] = up_to_last(s.servers.staleness);
  for (const Summary::Stage& stage : s.stages) json["stages"].push_back(to_json(stage));
  if (s.split.parts > 0)
    json["split"] = {{"parts", s.split.parts},
                     {"layers", s.split.layers},
                     {"parameters", s.split.parameters},
                     {"bytes_per_step", s.split.bytes_per_step},
                     {"waiting_seconds", s.split.waiting_seconds}};
  if (s.monitor.best_epoch > 0)
    json["monitor"] = {{"best_epoch", s.monitor.best_epoch},
                       {"best_loss", s.monitor.best_loss},
                       {"early", s.monitor.early},
                       {"rate_factor", s.monitor.rate_factor}};
  if (!s.shares.micro_batches.empty())
    json["shares"] = {{"deals", s.shares.deals}, {"micro_batches", s.shares.micro_batches}};
  if (s.pruning.weights > 0)
    json["pruning"] = {{"weights", s.pruning.weights},
                       {"zeros", s.pruning.zeros},
                       {"sparsity", static_cast<double>(s.pruning.zeros) / static_cast<double>(s.pruning.weights)}};
  json["epoch_history"] = std::move(history);
  return json;
}

}  // namespace

void write_summary(const std::filesystem::path& path, const Summary& summary) {
  write_text(path, whole_text(to_json(summary)));  // the library writes NaN as null
}

}  // namespace ronda
