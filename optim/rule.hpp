#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <ronda/core/host_device.hpp>

namespace ronda {

/// The numbers of one parameter in one step, for a rule.
struct RuleStep {
  double learning_rate = 0, weight_decay = 0;  ///< of the parameter's group
  double gradient_factor = 1;                  ///< sums of gradients times this are the mean, clipped
  std::uint64_t step = 1;                      ///< updates so far + 1
  // Of the whole parameter, where the rule needs them: see UpdateRule.
  double value_norm = 0;     ///< 2-norm
  double gradient_norm = 0;  ///< 2-norm of the mean gradient, clipped
  double update_norm = 0;    ///< 2-norm of what a TwoPassRule has proposed
  int dimensions = 1;        ///< 1: a bias, or another vector
};

/// A sum of gradients, or the nearer of ±`limit`; a NaN stays one.
[[nodiscard]] RONDA_HOST_DEVICE_INLINE float clipped(float sum, float limit) {
  return limit < sum ? limit : sum < -limit ? -limit : sum;
}

/// An update rule as a value: trivially copyable, so that a GPU's kernel can hold it.
///
///     static constexpr std::array<std::string_view, S> states  names of what is kept for each element, S ≤ 3
///     static constexpr bool needs_norms                        whether `scalars` reads norms of whole parameters
///     struct Scalars                                           what is the same for all elements of a parameter
///     Scalars scalars(const RuleStep&) const                   worked out once a step and parameter, in float64
///     static void apply(const Scalars&, float& value, float sum, float& first, float& second)
///                                                              one element; a third state comes last; those beyond S
///                                                              are scratch
///
/// `scalars` is RONDA_HOST_DEVICE and `apply` RONDA_HOST_DEVICE_INLINE: the processor's loops and a GPU's kernel are
/// made of them, so both give the same bits where their square roots and divisions are IEEE's.
template <class Rule>
concept UpdateRule = std::is_trivially_copyable_v<Rule> && std::is_trivially_copyable_v<typename Rule::Scalars> &&
                     (Rule::states.size() <= 3) &&
                     std::same_as<std::remove_cvref_t<decltype(Rule::needs_norms)>, bool>&& requires(
                         const Rule& rule, const RuleStep& step) {
  { Rule::states[0] } -> std::convertible_to<std::string_view>;
  { rule.scalars(step) } -> std::same_as<typename Rule::Scalars>;
};

/// A rule that needs to know its update of a whole parameter before it changes an element, as LAMB its norm. It needs
/// norms, keeps two states at most, and passes over the elements twice:
///
///     static float propose(const Scalars&, float value, float sum, float& first, float& second)
///                                              brings the states forward, and returns the update; `scalars` knows no
///                                              norms yet
///     apply                                    makes the update, by the states as they are then
template <class Rule>
concept TwoPassRule = UpdateRule<Rule> && Rule::needs_norms &&(Rule::states.size() <= 2) &&
                      requires(const typename Rule::Scalars& scalars, float value, float sum) {
  { Rule::propose(scalars, value, sum, value, value) } -> std::same_as<float>;
};

/// One element by `Rule::apply`, which takes two states, or three.
template <UpdateRule Rule>
RONDA_HOST_DEVICE_INLINE void apply_rule(const typename Rule::Scalars& scalars, float& value, float sum, float& first,
                                         float& second, float& third) {
  if constexpr (requires { Rule::apply(scalars, value, sum, first, second, third); })
    Rule::apply(scalars, value, sum, first, second, third);
  else
    Rule::apply(scalars, value, sum, first, second);
}

}  // namespace ronda
