#include <ronda/core/number.hpp>

#include <algorithm>

namespace ronda {

void convert(const Tensor& from, const Tensor& to) {
  if (from.shape() != to.shape() || from.desc().layout != to.desc().layout)
    throw LogicError("cannot convert " + from.desc().text() + " to " + to.desc().text());
  with_number(from.dtype(), [&]<class From>(std::type_identity<From>) {
    with_number(to.dtype(), [&]<class To>(std::type_identity<To>) {
      std::ranges::transform(from.as<const From>(), to.as<To>().begin(),
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
