#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <ronda/core/multiversion.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/rule.hpp>

namespace ronda {

/// Writes 16 floats with non-temporal stores, for data that is not read soon: the cache line is neither read from
/// memory first nor kept in a cache. Both pointers are 64-byte aligned. Other threads see the floats after
/// `finish_past_caches` and a synchronisation.
[[gnu::always_inline]] inline void write_past_caches(float* to, const float* from) noexcept {
#if defined(__SSE__)
  for (std::size_t i = 0; i < 16; i += 4) _mm_stream_ps(to + i, _mm_load_ps(from + i));
#else
  std::memcpy(to, from, 16 * sizeof(float));
#endif
}

/// Orders this thread's non-temporal stores before its later stores.
inline void finish_past_caches() noexcept {
#if defined(__SSE__)
  _mm_sfence();
#endif
}

/// Number of the stream's threads to use for a pass over `count` elements.
[[nodiscard]] inline int threads_for(std::size_t count, const Stream& stream) {
  constexpr std::size_t worth_a_thread = 1 << 14;  // elements; for fewer, starting threads takes longer than the pass
  const std::size_t useful = std::max<std::size_t>(count / worth_a_thread, 1);
  return static_cast<int>(std::min(useful, static_cast<std::size_t>(stream.threads())));
}

/// The magnitude as an integer that orders like it, with infinity and NaN above all numbers. Integers, because
/// compilers may assume that floating-point numbers are finite, and because integer maxima are vectorised.
[[gnu::always_inline]] inline std::int32_t magnitude(float value) {
  return std::bit_cast<std::int32_t>(value) & 0x7fffffff;
}
[[nodiscard]] inline bool is_finite(std::int32_t largest_magnitude) noexcept { return largest_magnitude < 0x7f800000; }

/// Values of at most this magnitude are not changed: only zeros, or none.
[[nodiscard]] inline std::int32_t largest_kept(const ArenaPart& part) noexcept { return part.keeps_zeros ? 0 : -1; }

/// Updates `width` elements of a part from `at` on, as many as fit into vector registers: sums their gradients, applies
/// the rule, and writes the new values into all copies, so that every byte is read from memory once.
template <class Rule, class Width>
[[gnu::always_inline]] inline void update_lanes(const ArenaPart& part, std::size_t at, Width width,
                                                const typename Rule::Scalars& scalars,
                                                std::array<std::int32_t, 16>& largest) {
  constexpr std::size_t states = Rule::states.size();
  alignas(64) std::array<float, 16> values, gradients, first{}, second{}, third{};
  const auto load = [&](std::array<float, 16>& lanes, const float* from)
                        RONDA_INLINE { each_lane(width, [&](auto l) RONDA_INLINE { lanes[l] = from[at + l]; }); };
  const auto store = [&](float* to, const std::array<float, 16>& lanes)
                         RONDA_INLINE { each_lane(width, [&](auto l) RONDA_INLINE { to[at + l] = lanes[l]; }); };
  load(gradients, part.gradients);
  for (const float* more : part.more_gradients)
    each_lane(width, [&](auto l) RONDA_INLINE { gradients[l] += more[part.offset + at + l]; });
  each_lane(width, [&](auto l) RONDA_INLINE { gradients[l] = clipped(gradients[l], part.gradient_limit); });
  load(values, part.values);
  if constexpr (states > 0) load(first, part.states[0]);
  if constexpr (states > 1) load(second, part.states[1]);
  if constexpr (states > 2) load(third, part.states[2]);
  const std::int32_t kept = largest_kept(part);
  each_lane(width, [&](auto l) RONDA_INLINE {
    const float before = values[l];
    apply_rule<Rule>(scalars, values[l], gradients[l], first[l], second[l], third[l]);
    values[l] = magnitude(before) <= kept ? before : values[l];
  });
  const auto look_at = [&](const std::array<float, 16>& lanes) RONDA_INLINE {
    each_lane(width, [&](auto l) RONDA_INLINE { largest[l] = std::max(largest[l], magnitude(lanes[l])); });
  };
  look_at(values);
  if constexpr (states > 0) look_at(first);
  if constexpr (states > 1) look_at(second);
  if constexpr (states > 2) look_at(third);
  if constexpr (states > 0) store(part.states[0], first);
  if constexpr (states > 1) store(part.states[1], second);
  if constexpr (states > 2) store(part.states[2], third);
  store(part.values, values);
  for (float* copy : part.copies)
    if constexpr (std::is_same_v<Width, std::integral_constant<std::int64_t, 16>>)
      write_past_caches(copy + part.offset + at, values.data());
    else
      store(copy + part.offset, values);
}

/// Updates the elements of one part, without other ranks' gradients and copies. Returns the largest written magnitude.
/// @tparam plainly  no gradient is clipped and no zero kept: the loop omits both
template <class Rule, bool plainly>
[[nodiscard, gnu::always_inline]] inline std::int32_t update_plain(const ArenaPart& part,
                                                                   const typename Rule::Scalars& scalars) {
  constexpr std::size_t states = Rule::states.size();
  const float limit = part.gradient_limit;
  const std::int32_t kept = largest_kept(part);
  float* __restrict values = part.values;
  const float* __restrict gradients = part.gradients;
  float* __restrict first = part.states[0];
  float* __restrict second = part.states[1];
  float* __restrict third = part.states[2];
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < part.count; ++i) {
    const float before = values[i];
    float value = before;
    float a = states > 0 ? first[i] : 0, b = states > 1 ? second[i] : 0, c = states > 2 ? third[i] : 0;
    apply_rule<Rule>(scalars, value, plainly ? gradients[i] : clipped(gradients[i], limit), a, b, c);
    if constexpr (!plainly) value = magnitude(before) <= kept ? before : value;
    largest = std::max(largest, magnitude(value));
    if constexpr (states > 0) largest = std::max(largest, magnitude(a));
    if constexpr (states > 1) largest = std::max(largest, magnitude(b));
    if constexpr (states > 2) largest = std::max(largest, magnitude(c));
    values[i] = value;
    if constexpr (states > 0) first[i] = a;
    if constexpr (states > 1) second[i] = b;
    if constexpr (states > 2) third[i] = c;
  }
  return largest;
}

/// The one loop of every update rule. For RONDA_MULTIVERSION functions. Returns whether all written numbers are finite.
/// States are checked too, because a bad state does not always show in the value: dividing by an infinite square gives
/// 0, and a sign is always finite.
template <UpdateRule Rule>
[[nodiscard, gnu::always_inline]] inline bool update_each(const ArenaPart& part, const typename Rule::Scalars& given) {
  const typename Rule::Scalars scalars = given;  // a local copy, which no store can alias
  if (!part.more_gradients.empty() || !part.copies.empty()) {
    alignas(64) std::array<std::int32_t, 16> largest{};
    by_lanes(static_cast<std::int64_t>(part.count), [&](std::int64_t at, auto width) RONDA_INLINE {
      update_lanes<Rule>(part, static_cast<std::size_t>(at), width, scalars, largest);
    });
    finish_past_caches();
    return is_finite(*std::ranges::max_element(largest));
  }
  const bool plainly = !is_finite(magnitude(part.gradient_limit)) && !part.keeps_zeros;
  return is_finite(plainly ? update_plain<Rule, true>(part, scalars) : update_plain<Rule, false>(part, scalars));
}

/// The first pass of a rule that has two. For RONDA_MULTIVERSION functions. Returns the sum of the squares of the
/// proposed updates: eight partial sums, added in order, so that the bits do not depend on the vector width.
template <TwoPassRule Rule>
[[nodiscard, gnu::always_inline]] inline double propose_each(const ArenaPart& part,
                                                             const typename Rule::Scalars& given) {
  constexpr std::size_t states = Rule::states.size(), lanes = 8;
  const typename Rule::Scalars scalars = given;
  std::array<double, lanes> sums{};
  const auto propose = [&](std::size_t i) RONDA_INLINE {
    float none = 0;
    const double update = Rule::propose(scalars, part.values[i], clipped(part.gradients[i], part.gradient_limit),
                                        states > 0 ? part.states[0][i] : none, states > 1 ? part.states[1][i] : none);
    return update * update;
  };
  std::size_t i = 0;
  for (; i + lanes <= part.count; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += propose(i + lane);
  double total = 0;
  for (const double sum : sums) total += sum;
  for (; i < part.count; ++i) total += propose(i);
  return total;
}

}  // namespace ronda

/// Defines the function NAME, update_each<RULE> compiled for several instruction sets.
#define RONDA_UPDATE_LOOP(NAME, RULE)                                                          \
  RONDA_MULTIVERSION bool NAME(const ::ronda::ArenaPart& part, const RULE::Scalars& scalars) { \
    return ::ronda::update_each<RULE>(part, scalars);                                          \
  }

/// The same for propose_each<RULE>.
#define RONDA_PROPOSE_LOOP(NAME, RULE)                                                           \
  RONDA_MULTIVERSION double NAME(const ::ronda::ArenaPart& part, const RULE::Scalars& scalars) { \
    return ::ronda::propose_each<RULE>(part, scalars);                                           \
  }
