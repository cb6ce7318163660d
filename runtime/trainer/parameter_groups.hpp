#pragma once
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <ronda/core/parameter.hpp>
#include <ronda/optim/optimizer.hpp>

namespace ronda {

struct TrainingOptions;

/// Parameters that are trained in a way of their own.
struct GroupOption {
  /// Which, by their names: a name, a layer's (`conv1` is `conv1.weight` and `conv1.bias`), or a pattern as
  /// of a shell, with *, ? and [ ]: `*.bias`.
  std::string pattern;
  /// Where the training's `learning_rate` is; the schedule changes it in the same proportion.
  std::optional<double> learning_rate = {};
  std::optional<double> weight_decay = {};
};

/// `*.bias:weight_decay=0,learning_rate=0.1`. Throws InputError that shows how it is written.
[[nodiscard]] GroupOption parse_group(std::string_view text);
[[nodiscard]] std::string text_of(const GroupOption& group);
/// Throws InputError for a group that changes nothing, or has numbers that cannot work.
void check(const GroupOption& group);

/// Whether the pattern of a GroupOption is for the parameter of this name.
[[nodiscard]] bool covers(const std::string& pattern, const std::string& name);

/// The group of each parameter, by its name: the result of `group_of`, then each of `freeze` and of `groups`, where
/// later ones win; and whether it is pruned. Null: all are alike.
/// @param options  with the training's learning rate
[[nodiscard]] std::function<ParameterGroup(std::string_view name)> groups_of(const TrainingOptions& options);
/// Whether `freeze` covers the parameter or state of this name.
[[nodiscard]] bool freezes(const TrainingOptions& options, const std::string& name);
/// Throws InputError for a name or a pattern of `freeze`, `groups` or `prune_only` that no parameter has, and where
/// none is left to be pruned: the training would be as without it, in silence.
/// @param held  states that `freeze` covers
void check_groups(const TrainingOptions& options, std::span<const Parameter> parameters,
                  const std::set<std::string>& held);
/// A warning if all parameters are frozen; otherwise empty.
[[nodiscard]] std::string frozen_warning(const TrainingOptions& options, std::span<const Parameter> parameters);
/// The group of each parameter, a line each, for ranks to compare.
[[nodiscard]] std::string text_of_groups(const TrainingOptions& options, std::span<const Parameter> parameters);

}  // namespace ronda
