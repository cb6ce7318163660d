#pragma once
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <ronda/core/state.hpp>
#include <ronda/core/message.hpp>
#include <ronda/optim/optimizer.hpp>

namespace ronda {

struct TrainingOptions;

/// Parameters with their own training settings.
struct GroupOption {
  /// Selects parameters by name: a parameter, a layer (`conv1` means `conv1.weight` and `conv1.bias`), or a shell
  /// pattern with *, ? and [ ]: `*.bias`.
  std::string pattern;
  /// Replaces the training's `learning_rate`; the schedule changes it in the same proportion.
  std::optional<double> learning_rate = {};
  std::optional<double> weight_decay = {};
};

/// Parses `*.bias:weight_decay=0,learning_rate=0.1`. Throws an InputError that shows the syntax.
[[nodiscard]] GroupOption parse_group(std::string_view text);
[[nodiscard]] std::string text_of(const GroupOption& group);
/// Throws InputError for a group that changes nothing, or has invalid numbers.
void check(const GroupOption& group);

/// True if the pattern of a GroupOption covers the parameter of this name.
[[nodiscard]] bool covers(const std::string& pattern, const std::string& name);

/// Returns a function from a parameter's name to its group: the result of `group_of`, then of each entry of `freeze`
/// and `groups`, where later ones override; and whether it is pruned. Null: all parameters have the same settings.
/// @param options  with the training's learning rate
[[nodiscard]] std::function<ParameterGroup(std::string_view name)> groups_of(const TrainingOptions& options);
/// True if `freeze` covers the parameter or state of this name.
[[nodiscard]] bool freezes(const TrainingOptions& options, const std::string& name);
/// Throws InputError for a name or pattern of `freeze`, `groups` or `prune_only` that matches no parameter, and if no
/// parameter is left to be pruned: these options would silently have no effect.
/// @param held  states that `freeze` covers
void check_groups(const TrainingOptions& options, std::span<const Parameter> parameters,
                  const std::set<std::string>& held);
/// A warning if all parameters are frozen; otherwise empty.
[[nodiscard]] Message frozen_warning(const TrainingOptions& options, std::span<const Parameter> parameters);
/// The group of each parameter, one per line, to be compared between ranks.
[[nodiscard]] std::string text_of_groups(const TrainingOptions& options, std::span<const Parameter> parameters);

}  // namespace ronda
