#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/trainer/parameter_groups.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace ronda {
namespace {

struct GroupNumber {
  std::string_view name;
  std::optional<double> GroupOption::*value;
};
constexpr std::array group_numbers{GroupNumber{"learning_rate", &GroupOption::learning_rate},
                                   GroupNumber{"weight_decay", &GroupOption::weight_decay}};

[[noreturn]] void refuse_group(std::string_view text) {
  throw InputError("'" + std::string(text) +
                   "' is no group of parameters: it is written NAME:learning_rate=0.1,weight_decay=0, with one of the "
                   "numbers or both, where NAME is a parameter's, or has * for any part");
}

/// `learning_rate=0.1`; false where it is not written so.
bool take_number(std::string_view text, GroupOption& group) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return false;
  std::string name(text.substr(0, equals));
  std::ranges::replace(name, '-', '_');
  const auto number = std::ranges::find(group_numbers, name, &GroupNumber::name);
  if (number == group_numbers.end() || group.*number->value) return false;
  const char *begin = text.data() + equals + 1, *end = text.data() + text.size();
  double value = 0;
  const auto parsed = std::from_chars(begin, end, value);
  group.*number->value = value;
  return parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace

GroupOption parse_group(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) refuse_group(text);
  GroupOption group{.pattern = std::string(text.substr(0, colon))};
  for (std::size_t begin = colon + 1, end = 0; end < text.size(); begin = end + 1) {
    end = std::min(text.find(',', begin), text.size());
    if (!take_number(text.substr(begin, end - begin), group)) refuse_group(text);
  }
  check(group);
  return group;
}

std::string text_of(const GroupOption& group) {
  std::string text = group.pattern, separator = ":";
  for (const GroupNumber& number : group_numbers) {
    if (!(group.*number.value)) continue;
    text += separator + std::string(number.name) + "=" + shortest(*(group.*number.value));
    separator = ",";
  }
  return text;
}

void check(const GroupOption& group) {
  if (group.pattern.empty() || (!group.learning_rate && !group.weight_decay)) refuse_group(text_of(group));
  for (const GroupNumber& number : group_numbers)
    if (const auto& value = group.*number.value; value && (!(*value >= 0) || !std::isfinite(*value)))
      throw InputError("the " + std::string(number.name) + " of a group of parameters is a number from 0 on; found '" +
                       text_of(group) + "'");
}

bool covers(const std::string& pattern, const std::string& name) {
  const bool begins = name.starts_with(pattern) && (name.size() == pattern.size() || name[pattern.size()] == '.');
  return begins || ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool freezes(const TrainingOptions& options, const std::string& name) {
  return std::ranges::any_of(options.freeze, [&](const std::string& pattern) { return covers(pattern, name); });
}

namespace {

/// What `prune_only` is where it is not given: matrices and kernels, by which outputs are products with inputs.
const std::vector<std::string> usually_pruned{"conv*.weight", "dense*.weight", "attention*.in_proj_weight",
                                              "attention*.out_proj.weight"};

}  // namespace

std::function<ParameterGroup(std::string_view)> groups_of(const TrainingOptions& options) {
  if (options.freeze.empty() && options.groups.empty() && options.prune == 0) return options.group_of;
  std::vector<std::string> prune;
  if (options.prune > 0) prune = options.prune_only.empty() ? usually_pruned : options.prune_only;
  return [group_of = options.group_of, freeze = options.freeze, groups = options.groups, prune,
          rate = options.learning_rate.value_or(0)](std::string_view name) {
    ParameterGroup result = group_of ? group_of(name) : ParameterGroup();
    const std::string whole(name);
    for (const std::string& pattern : freeze) result.frozen = result.frozen || covers(pattern, whole);
    for (const std::string& pattern : prune) result.pruned = result.pruned || covers(pattern, whole);
    for (const GroupOption& group : groups) {
      if (!covers(group.pattern, whole)) continue;
      if (group.learning_rate) result.rate_factor = *group.learning_rate == 0 ? 0 : *group.learning_rate / rate;
      if (group.weight_decay) result.weight_decay = group.weight_decay;
    }
    return result;
  };
}

std::string text_of_groups(const TrainingOptions& options, std::span<const Parameter> parameters) {
  const auto group_of = groups_of(options);
  if (!group_of) return "none\n";
  std::string text;
  for (const Parameter& parameter : parameters) {
    const ParameterGroup group = group_of(parameter.name);
    text += parameter.name + ": rate_factor " + shortest(group.rate_factor) + ", weight_decay " +
            (group.weight_decay ? shortest(*group.weight_decay) : "of the optimizer") +
            (group.frozen ? ", frozen" : "") + (group.pruned ? ", pruned" : "") + "\n";
  }
  return text;
}

void check_groups(const TrainingOptions& options, std::span<const Parameter> parameters,
                  const std::set<std::string>& held) {
  const auto check_pattern = [&](const char* field, const std::string& pattern) {
    const auto is_meant = [&](const Parameter& parameter) { return covers(pattern, parameter.name); };
    if (std::ranges::none_of(parameters, is_meant))
      throw InputError(setting(field) + ": the model has no parameter '" + pattern + "'; it has " +
                       listed(parameters, [](const Parameter& parameter) { return parameter.name; }));
  };
  for (const std::string& pattern : options.freeze)
    if (std::ranges::none_of(held, [&](const std::string& state) { return covers(pattern, state); }))
      check_pattern("freeze", pattern);
  for (const GroupOption& group : options.groups) check_pattern("groups", group.pattern);
  for (const std::string& pattern : options.prune_only) check_pattern("prune_only", pattern);
  if (options.prune == 0) return;
  const auto group_of = groups_of(options);
  const auto is_pruned = [&](const Parameter& parameter) {
    const ParameterGroup group = group_of(parameter.name);
    return group.pruned && !group.frozen;
  };
  if (std::ranges::none_of(parameters, is_pruned))
    throw InputError(setting("prune") + ": the model has no weight to prune that is trained; it has " +
                     listed(parameters, [](const Parameter& parameter) { return parameter.name; }) + "; name some by " +
                     setting("prune_only"));
}

Message frozen_warning(const TrainingOptions& options, std::span<const Parameter> parameters) {
  const auto group_of = groups_of(options);
  const auto is_frozen = [&](const Parameter& parameter) { return group_of(parameter.name).frozen; };
  if (!group_of || parameters.empty() || !std::ranges::all_of(parameters, is_frozen)) return {};
  return "no parameter is trained: " + setting("freeze") + " covers all of " +
         listed(parameters, [](const Parameter& parameter) { return parameter.name; });
}

}  // namespace ronda
