#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/optim/updater.hpp>
#include <ronda/runtime/strategy/strategies.hpp>
#include <ronda/runtime/trainer/option_visit.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <type_traits>

namespace ronda {
namespace {

std::string text_of(double value) { return shortest(value); }
std::string text_of(std::uint64_t value) { return std::to_string(value); }
std::string text_of(bool value) { return value ? "yes" : "no"; }
/// The path itself may differ from host to host.
std::string text_of(const std::filesystem::path& path) { return path.empty() ? "not given" : "given"; }
std::string text_of(int value) { return std::to_string(value); }
std::string text_of(const std::string& value) { return value; }
std::string text_of(const StrategyOptions& strategy) { return std::string(strategy.name()); }
std::string text_of(const CheckpointInterval& every) {
  return text_of(every.steps) + " steps, " + text_of(every.seconds) + " s";
}
template <class Enum>
requires std::is_enum_v<Enum> std::string text_of(Enum value) { return std::string(name_of(value)); }
template <class T>
std::string text_of(const std::vector<T>& values) {
  if (values.empty()) return "none";
  return listed(
      values, [](const T& value) { return text_of(value); }, ",");
}

/// An option's value in words.
template <class T>
std::string value_of(const Option&, const T& value) {
  return text_of(value);
}
template <class T>
std::string value_of(const Option& option, const std::optional<T>& value) {
  return value ? text_of(*value) : std::string(option.unset);
}

/// The options' values, by name.
std::map<std::string_view, std::string> values_of(const TrainingOptions& options) {
  std::map<std::string_view, std::string> values;
  EveryStrategy every(options.strategy);
  visit(options, every, [&](const Option& option, const auto& value, const auto&...) {
    values[option.name] = value_of(option, value);
  });
  return values;
}

template <class Predicate>
std::vector<OptimizerRow> rows_where(Predicate&& predicate) {
  std::vector<OptimizerRow> rows;
  std::ranges::copy_if(optimizer_rows(), std::back_inserter(rows), predicate);
  return rows;
}

std::string names_of(const std::vector<OptimizerRow>& rows) {
  return listed(
      rows, [](const OptimizerRow& row) { return row.name; }, " and ");
}

/// The first row's value, and those that are others: `0.999; lion 0.99`.
template <class Usual>
std::string usual_values(const std::vector<OptimizerRow>& rows, Usual&& usual) {
  std::string text = text_of(usual(rows.front())), separator = "; ";
  for (const OptimizerRow& row : rows) {
    if (usual(row) == usual(rows.front())) continue;
    text += separator + std::string(row.name) + " " + text_of(usual(row));
    separator = ", ";
  }
  return text;
}

void require_at_least_1(std::string_view field, std::size_t value) {
  if (value == 0) throw InputError(setting(field) + " is at least 1");
}

void require_from_0(std::string_view field, double value) {
  if (!(value >= 0) || !std::isfinite(value))
    throw InputError(setting(field) + " is a number from 0 on, not " + text_of(value));
}

void check_sizes(const TrainingOptions& o) {
  if (o.batch_size > 0 && o.global_batch_size > 0)
    throw InputError("the batch is given a rank (" + setting("batch_size") + ") or over all ranks (" +
                     setting("global_batch_size") + "), not both");
  if (o.batch_size > std::size_t{1} << 40)
    throw InputError(setting("batch_size", o.batch_size) + " is beyond any memory");
  require_at_least_1("accumulate", o.accumulate);
  if (o.shares != "equal" && o.shares != "measured")
    throw InputError("'" + o.shares + "' is not a choice for " + setting("shares") + ", which is equal or measured");
  if (o.shares == "measured" && o.accumulate == 1)
    throw InputError("faster ranks take more micro-batches (" + setting("shares", "measured") +
                     ") where a step has several a rank: give " + setting("accumulate"));
  require_at_least_1("shares_every", o.shares_every);
  if (o.steps_in_flight == 0) throw InputError("one step in flight is the least");
  if (o.steps == 0U || o.epochs == 0U)
    throw InputError(setting("steps") + " and " + setting("epochs") + " are at least 1");
  if (o.threads < 0) throw InputError(setting("threads") + " cannot be negative");
  for (const double value : {o.clip_norm, o.clip_value, o.warmup_epochs.value_or(0)})
    if (!(value >= 0) || !std::isfinite(value))
      throw InputError(setting("clip_norm") + ", " + setting("clip_value") + " and " + setting("warmup_epochs") +
                       " are numbers from 0 on, not " + text_of(value));
  refuse_both_clips(o.clip_norm, o.clip_value);
}

void check_learning_rate(const TrainingOptions& o) {
  if (!o.learning_rate) return;
  require_from_0("learning_rate", *o.learning_rate);
  if (*o.learning_rate == 0 && std::ranges::any_of(o.groups, [](const auto& group) { return group.learning_rate > 0; }))
    throw InputError(setting("learning_rate", "0") + " and a rate of " + setting("groups") +
                     ": the schedule changes both in proportion, which 0 has none to; give the training a rate, and "
                     "name what is not trained by " +
                     setting("freeze"));
}

void check_watching(const TrainingOptions& o) {
  if (o.validation_split != 0 && !(o.validation_split > 0 && o.validation_split < 1))
    throw InputError(setting("validation_split") + " is a share of the training data, above 0 and below 1, not " +
                     text_of(o.validation_split));
  if (o.reduce_rate_after > 0 && !(o.reduce_rate_factor > 0 && o.reduce_rate_factor < 1))
    throw InputError(setting("reduce_rate_factor") + " makes the rate smaller: it is above 0 and below 1, not " +
                     text_of(o.reduce_rate_factor));
  require_from_0("least_improvement", o.least_improvement);
}

void check_pruning(const TrainingOptions& o) {
  if (!(o.prune >= 0 && o.prune < 1))
    throw InputError(setting("prune") + " is a share of the weights, from 0 on and below 1, not " + text_of(o.prune));
  if (!(o.prune_begin >= 0 && o.prune_begin <= o.prune_end && o.prune_end <= 1))
    throw InputError(setting("prune_begin") + " and " + setting("prune_end") +
                     " are shares of the steps, from 0 to 1, and the end does not come first; found " +
                     text_of(o.prune_begin) + " and " + text_of(o.prune_end));
  if (o.prune > 0 && (o.keep_best || o.early_stopping > 0))
    throw InputError(setting("keep_best") + " and " + setting("early_stopping") +
                     " would choose an epoch in which the weights are not pruned yet; take " + setting("prune") +
                     " without them");
}

/// Not only where a training goes on: a name that is spelt wrong would be found then, long after it was started.
void check_allowed_changes(const TrainingOptions& o) {
  if (o.allow_changes.empty()) return;
  const std::vector<OptionInWords> options = in_words(o);
  for (const std::string& allowed : o.allow_changes)
    if (allowed != "data" && allowed != "steps" && std::ranges::count(options, allowed, &OptionInWords::name) == 0)
      throw InputError(setting("allow_changes") + ": '" + allowed +
                       "' is not the name of an option, as seed and learning-rate are, nor data");
}

void check_resilience(const TrainingOptions& o) {
  const bool saves = !o.checkpoint_dir.empty();
  const bool resumes = o.resume || o.resume_or_restart;
  if (!saves && (resumes || o.checkpoint_every.steps > 0 || o.checkpoint_every.seconds > 0 || o.time_limit > 0))
    throw InputError(setting("resume") + ", " + setting("resume_or_restart") + ", " + setting("checkpoint_every") +
                     " and " + setting("time_limit") + " need " + setting("checkpoint_dir"));
  if (resumes && !o.resume_from.empty())
    throw InputError("the newest checkpoint is taken (" + setting("resume") + ") or a certain one (" +
                     setting("resume_from") + "), not both");
  if (o.on_nonfinite == OnNonfinite::rollback && !saves)
    throw InputError(setting("on_nonfinite", "rollback") + " goes back to a checkpoint: it needs " +
                     setting("checkpoint_dir") + " and " + setting("checkpoint_every"));
  require_at_least_1("keep", o.keep);
  check_allowed_changes(o);
}

void check_types(const TrainingOptions& o) {
  const bool on_gpu = o.device == DeviceChoice::cuda, half = dtype_of_layers(o.precision) != DType::float32;
  const Message precision = setting("precision", name_of(o.precision));
  if (!on_gpu && o.precision != Precision::float32 && o.precision != Precision::mixed_bfloat16)
    throw InputError(precision + " is for GPUs, with " + setting("device", "cuda") +
                     "; on the processor a training computes in float32 or mixed_bfloat16");
  if (o.emulate_dtype && (on_gpu || !half))
    throw InputError(setting("emulate_dtype") + " is for " + setting("precision", "mixed_bfloat16") +
                     " on the processor");
  if (!o.reduce_dtype) return;
  const Message reduce = setting("reduce_dtype", name_of(*o.reduce_dtype));
  if (on_gpu) throw InputError(reduce + " is for the processor; GPUs sum gradients in the type they have");
  if (*o.reduce_dtype != DType::float32 && *o.reduce_dtype != dtype_of_layers(o.precision))
    throw InputError(reduce + " does not fit " + precision + ", whose gradients are summed in " +
                     (half ? "bfloat16 or float32" : "float32"));
}

Demands demands_of(const TrainingOptions& o) {
  return {.allreduce = o.allreduce,
          .compression = o.compression,
          .audits = o.audit_every > 0,
          .unequal_shares = o.shares != "equal",
          .half_type = dtype_of_layers(o.precision) == DType::float32 ? "" : name_of(o.precision),
          .on_gpu = o.device == DeviceChoice::cuda,
          .prunes = o.prune > 0,
          .exact = o.exact,
          .timed_saves = !o.checkpoint_dir.empty() && o.checkpoint_every.seconds > 0};
}

/// Texts in files must be UTF-8: checked here, before the training, not when the model is written.
void check_texts(const TrainingOptions& o) {
  const auto require = [](const Message& what, const std::string& text) {
    if (!is_utf8(text)) throw InputError(what + " = " + printable(text) + " is not UTF-8: give it in UTF-8");
  };
  for (const auto& [key, text] : o.metadata) {
    require(setting("metadata") + ": the name " + printable(key), key);
    require(setting("metadata") + ": " + printable(key), text);
  }
  for (const OptionInWords& option : in_words(o))
    require(
        option.name == "model" ? setting("application") + " and " + setting("variant") : "the option " + option.name,
        option.value);
}

}  // namespace

std::vector<Output> outputs_of(const TrainingOptions& options) {
  return {{.name = setting("save"), .path = options.save, .may_replace = options.init},
          {setting("summary_json"), options.summary_json},
          {setting("metrics"), options.metrics},
          {setting("metrics_csv"), options.metrics_csv},
          {setting("predictions"), options.predictions},
          {setting("plan"), options.plan},
          {setting("tensorboard"), options.tensorboard, true},
          {setting("checkpoint_dir"), options.checkpoint_dir, true}};
}

int servers_of(const TrainingOptions& options) noexcept {
  const auto* servers = options.strategy.as<ParameterServer>();
  return servers == nullptr ? 0 : servers->count();
}

void refuse_unread(const TrainingOptions& options, EveryStrategy every,
                   FunctionRef<bool(std::string_view name)> given) {
  static_cast<void>(default_learning_rate(options.optimizer.name));  // throws where there is no such optimizer
  static_cast<void>(schedule_row(options.schedule));
  visit(options, every, [&](const Option& option, const auto&...) {
    if (!option.unread.empty() && given(option.name))
      throw InputError(setting(option.field_name()) + " has no meaning " + option.unread);
  });
}

void check(const TrainingOptions& options) {
  check_types(options);
  check(options.strategy, demands_of(options));
  if (options.nondeterministic && options.device != DeviceChoice::cuda)
    throw InputError(setting("nondeterministic") + " is for GPUs, with " + setting("device", "cuda") +
                     "; on the processor equal runs have equal bits");
  if (options.nondeterministic && options.exact)
    throw InputError(setting("exact") + " promises equal bits, and " + setting("nondeterministic") +
                     " gives them up; take one of them");
  if (options.shares == "measured" && options.exact)
    throw InputError(setting("exact") + " promises equal bits, which shares by measured times (" +
                     setting("shares", "measured") + ") do not give; take " + setting("shares", "equal"));
  check_sizes(options);
  check_learning_rate(options);
  for (const GroupOption& group : options.groups) check(group);
  check_watching(options);
  check_pruning(options);
  check_resilience(options);
  check_texts(options);
  const TrainingOptions unset;
  const auto values = values_of(options), defaults = values_of(unset);
  refuse_unread(options, EveryStrategy(options.strategy),
                [&](std::string_view name) { return values.at(name) != defaults.at(name); });
}

EngineRules engine_rules(const TrainingOptions& options) noexcept {
  return {options.precision, !options.nondeterministic};
}

std::vector<OptionInWords> in_words(const TrainingOptions& options) {
  std::vector<OptionInWords> list{{"model", options.application + ", " + options.variant, true}};
  EveryStrategy every(options.strategy);
  visit(options, every, [&](const Option& option, const auto& value, const auto&...) {
    if (option.alike) list.push_back({std::string(option.name), value_of(option, value), option.matters});
  });
  return list;
}

Option option_of_optimizer(std::string_view name, std::string_view field, std::string_view optimizer) {
  const std::string_view read = field.substr(field.find('.') + 1);
  const auto usual = [&](const OptimizerRow& row) {
    return std::ranges::find(row.reads, read, &OptimizerField::name)->usual;
  };
  const auto readers = rows_where([&](const OptimizerRow& row) { return optimizer_reads(row.name, read); });
  const bool matters = optimizer_reads(optimizer, read);
  const Message unread = "for " + setting("optimizer.name", optimizer) + ": it is for " + names_of(readers);
  return {.name = name,
          .group = "Learning",
          .help = "Of " + names_of(readers),
          .otherwise = usual_values(readers, usual),
          .field = field,
          .matters = matters,
          .unread = matters ? "" : unread};
}

Option option_of_schedule(std::string_view name, std::string help, std::string_view schedule) {
  Option option{.name = name, .group = "Learning", .help = std::move(help)};
  const std::string field = option.field_name();
  const auto reads = [&](const ScheduleRow& row) { return std::ranges::count(row.reads, field) > 0; };
  const std::string reader(std::ranges::find_if(schedule_rows(), reads)->name);
  option.help = "Of " + reader + ": " + option.help;
  option.matters = reads(schedule_row(schedule));
  if (!option.matters) option.unread = "for " + setting("schedule", schedule) + ": it is for " + reader;
  return option;
}

std::string usual_weight_decays() {
  return usual_values(rows_where([](const OptimizerRow&) { return true; }),
                      [](const OptimizerRow& row) { return row.weight_decay; });
}

std::string decoupled_optimizers() {
  return names_of(rows_where([](const OptimizerRow& row) { return row.decoupled; }));
}

std::string listed_strategies() {
  std::string text;
  for (const StrategyRow& row : strategy_rows())
    text += (text.empty() ? "" : "; ") + std::string(row.name) + ": " + std::string(row.help);
  return text;
}

std::string listed_allreduces() {
  const auto names = [](DeviceKind device) {
    return listed(allreduce_names(device), [](std::string_view name) { return name; });
  };
  return names(DeviceKind::cpu) + "; on GPUs: " + names(DeviceKind::cuda);
}

}  // namespace ronda
