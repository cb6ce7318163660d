#include <ronda/core/multiversion.hpp>
#include <ronda/core/number.hpp>

#include <algorithm>

namespace ronda {
namespace {

template <Number From, Number To>
[[gnu::always_inline]] inline void convert_each(const From* __restrict from, To* __restrict to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = as_number<To>(as_float(from[i]));
}

}  // namespace

RONDA_MULTIVERSION void convert(const BFloat16* from, float* to, std::size_t count) noexcept {
  convert_each(from, to, count);
}
RONDA_MULTIVERSION void convert(const Float16* from, float* to, std::size_t count) noexcept {
  convert_each(from, to, count);
}
RONDA_MULTIVERSION void convert(const float* from, BFloat16* to, std::size_t count) noexcept {
  convert_each(from, to, count);
}
RONDA_MULTIVERSION void convert(const float* from, Float16* to, std::size_t count) noexcept {
  convert_each(from, to, count);
}

void convert(const Tensor& from, const Tensor& to) {
  if (from.shape() != to.shape() || from.desc().layout != to.desc().layout)
    throw LogicError("cannot convert " + from.desc().text() + " to " + to.desc().text());
  with_number(from.dtype(), [&]<class From>(std::type_identity<From>) {
    with_number(to.dtype(), [&]<class To>(std::type_identity<To>) {
      const auto numbers = from.as<const From>();
      if constexpr (std::same_as<From, float> != std::same_as<To, float>)
        convert(numbers.data(), to.as<To>().data(), numbers.size());
      else
        std::ranges::transform(numbers, to.as<To>().begin(),
                               [](From number) { return as_number<To>(as_float(number)); });
    });
  });
}

std::vector<float> floats_of(const Tensor& tensor) {
  std::vector<float> numbers(static_cast<std::size_t>(tensor.desc().padded_count()));
  convert(tensor, Tensor({tensor.shape(), DType::float32, tensor.desc().layout}, numbers.data()));
  return numbers;
}

}  // namespace ronda
