#include <ronda/collectives/host/reduction.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/names.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace ronda {
namespace {

// ---- one element ----------------------------------------------------------------------------------------------------

/// What elements lie in memory as, and what they are computed with.
template <class T>
struct Representation {
  using Stored = T;
  using Wide = T;
};
template <class T>
requires std::is_class_v<T>
struct Representation<T> {
  using Stored = std::uint16_t;  // the bare bits, because the compiler makes no vectors of structures
  using Wide = float;
};
template <class T>
using Stored = typename Representation<T>::Stored;
template <class T>
using Wide = typename Representation<T>::Wide;

template <class T>
[[gnu::always_inline]] inline Wide<T> load(Stored<T> value) noexcept {
  if constexpr (std::is_class_v<T>)
    return to_float(T{value});
  else
    return value;
}
template <class T>
[[gnu::always_inline]] inline Stored<T> store(Wide<T> value) noexcept {
  if constexpr (std::is_class_v<T>)
    return to_half<T>(value).bits;
  else
    return value;
}

/// The lesser or, for `maximum`, the greater. Of two equal numbers that are zeros −0 is the lesser.
template <ReduceOp op, class W>
[[gnu::always_inline]] inline W extreme(W a, W b) noexcept {
  const W chosen = (op == ReduceOp::minimum ? b < a : a < b) ? b : a;
  if constexpr (std::is_integral_v<W>) {
    return chosen;
  } else {
    using Bits = std::conditional_t<sizeof(W) == 4, std::uint32_t, std::uint64_t>;
    const auto x = std::bit_cast<Bits>(a), y = std::bit_cast<Bits>(b);
    const W equal = std::bit_cast<W>(op == ReduceOp::minimum ? x | y : x & y);  // the sign alone can differ
    const W ordered = a == b ? equal : chosen;
    return std::isunordered(a, b) ? std::numeric_limits<W>::quiet_NaN() : ordered;
  }
}

template <ReduceOp op, class W>
[[gnu::always_inline]] inline W apply(W a, W b) noexcept {
  if constexpr (op == ReduceOp::minimum || op == ReduceOp::maximum) {
    return extreme<op>(a, b);
  } else if constexpr (std::is_integral_v<W>) {
    using Unsigned = std::make_unsigned_t<W>;  // which may wrap around
    const std::uint64_t x = static_cast<Unsigned>(a), y = static_cast<Unsigned>(b);
    if constexpr (op == ReduceOp::bitwise_and) return static_cast<W>(x & y);
    return static_cast<W>(op == ReduceOp::product ? x * y : x + y);
  } else {
    return op == ReduceOp::product ? a * b : a + b;
  }
}

/// What sums are divided by: no small integer, of which there may be more ranks. Those that a double holds are divided
/// as such, which is exact where it matters, and many times faster.
template <class W>
using Divisor = std::conditional_t<std::is_same_v<W, float>, float,
                                   std::conditional_t<std::is_same_v<W, std::int64_t>, std::int64_t, double>>;

template <ReduceOp op, class W>
[[gnu::always_inline]] inline W finished(W value, Divisor<W> ranks) noexcept {
  return op == ReduceOp::mean ? static_cast<W>(value / ranks) : value;
}

// ---- loops ----------------------------------------------------------------------------------------------------------

template <ReduceOp op, class T>
[[gnu::always_inline]] inline void combine_loop(Stored<T>* __restrict into, const Stored<T>* __restrict from,
                                                std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) into[i] = store<T>(apply<op>(load<T>(into[i]), load<T>(from[i])));
}

template <ReduceOp op, class T>
[[gnu::always_inline]] inline void pair_loop(Stored<T>* __restrict a, Stored<T>* __restrict b, std::size_t count,
                                             Divisor<Wide<T>> ranks) {
  for (std::size_t i = 0; i < count; ++i) {
    const Stored<T> result = store<T>(finished<op>(apply<op>(load<T>(a[i]), load<T>(b[i])), ranks));
    a[i] = result;
    b[i] = result;
  }
}

/// Two copies and one target, which may be one of them: what two ranks do with a few numbers.
template <ReduceOp op, class T>
[[gnu::always_inline]] inline void join_loop(const Stored<T>* a, const Stored<T>* b, Stored<T>* into, std::size_t count,
                                             Divisor<Wide<T>> ranks) {
  for (std::size_t i = 0; i < count; ++i)
    into[i] = store<T>(finished<op>(apply<op>(load<T>(a[i]), load<T>(b[i])), ranks));
}

/// In blocks that stay in the first-level cache from the first copy to the last target.
template <ReduceOp op, class T>
[[gnu::always_inline]] inline void copies_loop(std::span<std::byte* const> copies, Range range,
                                               std::span<std::byte* const> targets, Divisor<Wide<T>> ranks) {
  constexpr std::size_t block = 4096 / sizeof(Wide<T>);
  alignas(64) std::array<Wide<T>, block> wide;
  alignas(64) std::array<Stored<T>, block> result;
  for (std::size_t at = range.begin; at < range.end; at += block) {
    const std::size_t count = std::min(block, range.end - at);
    const Stored<T>* first = reinterpret_cast<const Stored<T>*>(copies[0]) + at;
    for (std::size_t i = 0; i < count; ++i) wide[i] = load<T>(first[i]);
    for (std::byte* copy : copies.subspan(1)) {
      const Stored<T>* __restrict from = reinterpret_cast<const Stored<T>*>(copy) + at;
      for (std::size_t i = 0; i < count; ++i) wide[i] = apply<op>(wide[i], load<T>(from[i]));
    }
    for (std::size_t i = 0; i < count; ++i) result[i] = store<T>(finished<op>(wide[i], ranks));
    for (std::byte* target : targets) std::memcpy(target + at * sizeof(T), result.data(), count * sizeof(T));
  }
}

/// Calls body.operator()<op>().
template <class Body>
[[gnu::always_inline]] inline void with(ReduceOp op, Body&& body) {
  switch (op) {
    case ReduceOp::sum: return body.template operator()<ReduceOp::sum>();
    case ReduceOp::mean: return body.template operator()<ReduceOp::mean>();
    case ReduceOp::minimum: return body.template operator()<ReduceOp::minimum>();
    case ReduceOp::maximum: return body.template operator()<ReduceOp::maximum>();
    case ReduceOp::product: return body.template operator()<ReduceOp::product>();
    case ReduceOp::bitwise_and: return body.template operator()<ReduceOp::bitwise_and>();
  }
}

template <class T>
[[gnu::always_inline]] inline void reduce(const Reduction& reduction, std::span<std::byte* const> copies, Range range,
                                          std::span<std::byte* const> targets) {
  const auto ranks = static_cast<Divisor<Wide<T>>>(reduction.ranks);
  const bool pair = copies.size() == 2 && targets.data() == copies.data() && targets.size() == 2;
  with(reduction.op, [&]<ReduceOp op>() RONDA_INLINE {
    if (pair)
      pair_loop<op, T>(reinterpret_cast<Stored<T>*>(copies[0]) + range.begin,
                       reinterpret_cast<Stored<T>*>(copies[1]) + range.begin, range.size(), ranks);
    else if (copies.size() == 2 && targets.size() == 1)
      join_loop<op, T>(reinterpret_cast<const Stored<T>*>(copies[0]) + range.begin,
                       reinterpret_cast<const Stored<T>*>(copies[1]) + range.begin,
                       reinterpret_cast<Stored<T>*>(targets[0]) + range.begin, range.size(), ranks);
    else
      copies_loop<op, T>(copies, range, targets, ranks);
  });
}

template <class T>
[[gnu::always_inline]] inline void unify_loop(Stored<T>* numbers, std::size_t count) {
  if constexpr (!std::is_integral_v<Wide<T>>) {
    const Stored<T> nan = store<T>(std::numeric_limits<Wide<T>>::quiet_NaN());
    for (std::size_t i = 0; i < count; ++i) {
      const Wide<T> value = load<T>(numbers[i]);
      numbers[i] = std::isnan(value) ? nan : numbers[i];
    }
  }
}

// ---- for every type -------------------------------------------------------------------------------------------------

// NOLINTBEGIN(bugprone-macro-parentheses): a type cannot stand in them.
#define RONDA_FOR_EACH_TYPE(X) \
  X(float32, float)            \
  X(float64, double)           \
  X(float16, Float16)          \
  X(bfloat16, BFloat16)        \
  X(int8, std::int8_t)         \
  X(uint8, std::uint8_t)       \
  X(int32, std::int32_t)       \
  X(int64, std::int64_t)

#define RONDA_LOOPS(name, T)                                                                                         \
  RONDA_MULTIVERSION void combine_##name(ReduceOp op, std::byte* into, const std::byte* from, std::size_t count) {   \
    with(op, [&]<ReduceOp o>() RONDA_INLINE {                                                                        \
      combine_loop<o, T>(reinterpret_cast<Stored<T>*>(into), reinterpret_cast<const Stored<T>*>(from), count);       \
    });                                                                                                              \
  }                                                                                                                  \
  RONDA_MULTIVERSION void divide_##name(std::byte* sums, std::size_t count, int ranks) {                             \
    auto* values = reinterpret_cast<Stored<T>*>(sums);                                                               \
    const auto divisor = static_cast<Divisor<Wide<T>>>(ranks);                                                       \
    for (std::size_t i = 0; i < count; ++i)                                                                          \
      values[i] = store<T>(finished<ReduceOp::mean>(load<T>(values[i]), divisor));                                   \
  }                                                                                                                  \
  RONDA_MULTIVERSION void unify_##name(std::byte* numbers, std::size_t count) {                                      \
    unify_loop<T>(reinterpret_cast<Stored<T>*>(numbers), count);                                                     \
  }                                                                                                                  \
  RONDA_MULTIVERSION void reduce_##name(const Reduction& reduction, std::span<std::byte* const> copies, Range range, \
                                        std::span<std::byte* const> targets) {                                       \
    reduce<T>(reduction, copies, range, targets);                                                                    \
  }
RONDA_FOR_EACH_TYPE(RONDA_LOOPS)
// NOLINTEND(bugprone-macro-parentheses)

constexpr EnumNames<ReduceOp, 6> op_names{{
    {ReduceOp::sum, "sum"},
    {ReduceOp::mean, "mean"},
    {ReduceOp::minimum, "min"},
    {ReduceOp::maximum, "max"},
    {ReduceOp::product, "prod"},
    {ReduceOp::bitwise_and, "and"},
}};

}  // namespace

ReduceOp parse_reduce_op(std::string_view name) { return parse_name(op_names, name, "an operation"); }

std::string_view name_of(ReduceOp op) noexcept { return find_name(op_names, op); }

void require_sense(ReduceOp op, DType dtype) {
  if (op > last_reduce_op)
    throw InputError("there is no operation " + std::to_string(static_cast<int>(op)) + ": take a value of ReduceOp");
  if (size_of(dtype) == 0)
    throw InputError("there is no type " + std::to_string(static_cast<int>(dtype)) + ": take a value of DType");
  if (op == ReduceOp::bitwise_and && !is_integer(dtype))
    throw LogicError("the operation 'and' is for integers, not for " + std::string(name_of(dtype)));
}

Elements elements_of(const Tensor& tensor) {
  if (tensor.desc().padded_count() > Shape::most_elements)
    throw InputError("a tensor of " + tensor.desc().text() + " has more elements than memory can have");
  return {tensor.data(), static_cast<std::size_t>(tensor.desc().padded_count()), tensor.dtype()};
}

void combine(ReduceOp op, const Elements& into, const std::byte* from) {
  switch (into.dtype) {
#define RONDA_CASE(name, T) \
  case DType::name: return combine_##name(op, into.data, from, into.count);
    RONDA_FOR_EACH_TYPE(RONDA_CASE)
#undef RONDA_CASE
  }
}

void divide_if_mean(const Reduction& reduction, const Elements& sums) {
  if (reduction.op != ReduceOp::mean || reduction.ranks == 1) return;
  switch (sums.dtype) {
#define RONDA_CASE(name, T) \
  case DType::name: return divide_##name(sums.data, sums.count, reduction.ranks);
    RONDA_FOR_EACH_TYPE(RONDA_CASE)
#undef RONDA_CASE
  }
}

void unify_nans(const Elements& numbers) {
  switch (numbers.dtype) {
#define RONDA_CASE(name, T) \
  case DType::name: return unify_##name(numbers.data, numbers.count);
    RONDA_FOR_EACH_TYPE(RONDA_CASE)
#undef RONDA_CASE
  }
}

void reduce_copies(const Reduction& reduction, std::span<std::byte* const> copies, DType dtype, Range range,
                   std::span<std::byte* const> targets) {
  switch (dtype) {
#define RONDA_CASE(name, T) \
  case DType::name: return reduce_##name(reduction, copies, range, targets);
    RONDA_FOR_EACH_TYPE(RONDA_CASE)
#undef RONDA_CASE
  }
}

}  // namespace ronda
