#include <ronda/collectives/host/algorithms/wide_mean.hpp>
#include <ronda/core/number.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace ronda {
namespace {

/// Calls body(pointer to the integers), by their type.
template <class Body>
void with_integers(const Elements& data, const Body& body) {
  switch (data.dtype) {
    case DType::int8: return body(reinterpret_cast<std::int8_t*>(data.data));
    case DType::uint8: return body(reinterpret_cast<std::uint8_t*>(data.data));
    case DType::int32: return body(reinterpret_cast<std::int32_t*>(data.data));
    case DType::int64: return body(reinterpret_cast<std::int64_t*>(data.data));
    default: return;
  }
}

/// Divides `ranks` · `quotient` + `remainder` by `ranks`, rounded towards zero.
std::int64_t mean_of(std::int64_t quotient, std::int64_t remainder, std::int64_t ranks) {
  const std::int64_t mean = quotient + remainder / ranks, rest = remainder % ranks;
  if (mean > 0 && rest < 0) return mean - 1;
  if (mean < 0 && rest > 0) return mean + 1;
  return mean;
}

}  // namespace

void WideMean::widen() const {
  if (data_.dtype == DType::float16)
    return convert(reinterpret_cast<const Float16*>(data_.data), reinterpret_cast<float*>(memory_.data()), data_.count);
  auto* const into = reinterpret_cast<std::int64_t*>(memory_.data());
  with_integers(data_, [&](const auto* numbers) {
    if constexpr (std::is_same_v<decltype(numbers), const std::int64_t*>) {
      for (std::size_t i = 0; i < data_.count; ++i) {
        into[2 * i] = numbers[i] / ranks_;
        into[2 * i + 1] = numbers[i] % ranks_;
      }
    } else {
      std::copy_n(numbers, data_.count, into);
    }
  });
}

void WideMean::narrow() const {
  if (data_.dtype == DType::float16) {
    divide_if_mean({ReduceOp::mean, ranks_}, wide(data_, memory_));
    return convert(reinterpret_cast<const float*>(memory_.data()), reinterpret_cast<Float16*>(data_.data), data_.count);
  }
  const auto* const sums = reinterpret_cast<const std::int64_t*>(memory_.data());
  with_integers(data_, [&](auto* numbers) {
    using Number = std::remove_reference_t<decltype(*numbers)>;
    for (std::size_t i = 0; i < data_.count; ++i) {
      if constexpr (std::is_same_v<Number, std::int64_t>)
        numbers[i] = mean_of(sums[2 * i], sums[2 * i + 1], ranks_);
      else
        numbers[i] = static_cast<Number>(sums[i] / ranks_);
    }
  });
}

}  // namespace ronda
