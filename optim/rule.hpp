#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <ronda/core/host_device.hpp>

namespace ronda {

/// Input of a rule for one parameter in one step.
struct RuleStep {
  double learning_rate = 0, weight_decay = 0;  ///< for the parameter's group
  double gradient_factor = 1;                  ///< sum of gradients times this: the mean gradient, clipped
  std::uint64_t step = 1;                      ///< number of this update, from 1
  // Norms of the whole parameter, if the rule needs them: see UpdateRule.
  double value_norm = 0;     ///< 2-norm
  double gradient_norm = 0;  ///< 2-norm of the mean gradient, clipped
  double update_norm = 0;    ///< 2-norm of the update that a TwoPassRule proposed
  int dimensions = 1;        ///< 1: a bias, or another vector
};

/// `sum`, clipped to ±`limit`; NaN stays NaN.
[[nodiscard]] RONDA_HOST_DEVICE_INLINE float clipped(float sum, float limit) {
  return limit < sum ? limit : sum < -limit ? -limit : sum;
}

/// An update rule as a value: trivially copyable, so that a GPU's kernel can hold it.
///
///     static constexpr std::array<std::string_view, S> states  names of the states of each element, S ≤ 3
///     static constexpr bool needs_norms                        whether `scalars` reads norms of whole parameters
///     struct Scalars                                           numbers common to all elements of a parameter
///     Scalars scalars(const RuleStep&) const                   computed per step and parameter, in float64
///     static void apply(const Scalars&, float& value, float sum, float& first, float& second)
///                                                              updates one element; a third state is the last
///                                                              argument; states beyond S are scratch
///
/// `scalars` is RONDA_HOST_DEVICE and `apply` RONDA_HOST_DEVICE_INLINE: the processor's loops and GPU kernels both use
/// them, so both give the same bits if their square roots and divisions are IEEE 754's.
template <class Rule>
concept UpdateRule = std::is_trivially_copyable_v<Rule> && std::is_trivially_copyable_v<typename Rule::Scalars> &&
                     (Rule::states.size() <= 3) &&
                     std::same_as<std::remove_cvref_t<decltype(Rule::needs_norms)>, bool>&& requires(
                         const Rule& rule, const RuleStep& step) {
  { Rule::states[0] } -> std::convertible_to<std::string_view>;
  { rule.scalars(step) } -> std::same_as<typename Rule::Scalars>;
};

/// A rule that needs its update of a whole parameter before it changes an element, as LAMB needs the update's norm. It
/// needs norms, has at most two states, and passes over the elements twice:
///
///     static float propose(const Scalars&, float value, float sum, float& first, float& second)
///                                              updates the states, and returns the parameter's update; `scalars`
///                                              has no norms yet
///     apply                                    applies the update, computed from the new states
template <class Rule>
concept TwoPassRule = UpdateRule<Rule> && Rule::needs_norms &&(Rule::states.size() <= 2) &&
                      requires(const typename Rule::Scalars& scalars, float value, float sum) {
  { Rule::propose(scalars, value, sum, value, value) } -> std::same_as<float>;
};

/// Updates one element with `Rule::apply`, which takes two or three states.
template <UpdateRule Rule>
RONDA_HOST_DEVICE_INLINE void apply_rule(const typename Rule::Scalars& scalars, float& value, float sum, float& first,
                                         float& second, float& third) {
  if constexpr (requires { Rule::apply(scalars, value, sum, first, second, third); })
    Rule::apply(scalars, value, sum, first, second, third);
  else
    Rule::apply(scalars, value, sum, first, second);
}

}  // namespace ronda
