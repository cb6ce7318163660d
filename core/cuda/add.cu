#include <ronda/core/cuda/kernels.hpp>
#include <ronda/core/cuda/launch.cuh>
#include <ronda/core/cuda/stream.hpp>
#include <ronda/core/number.hpp>

namespace ronda::cuda {
namespace {

template <Number From, Number To>
struct Add {
  const From* from;
  const float* more;
  To* to;
  __device__ void operator()(std::int64_t i) const {
    const float value = as_float(from[i]);
    to[i] = as_number<To>(more == nullptr ? value : value + more[i]);
  }
};

template <Number From, Number To>
void launch(const Tensor& from, const float* more, const Tensor& to, Stream& stream) {
  for_each(handle_of(stream), from.desc().padded_count(), Add<From, To>{from.pointer<From>(), more, to.pointer<To>()});
}

}  // namespace

void add(const Tensor& from, const float* more, const Tensor& to, Stream& stream) {
  with_number(from.dtype(), [&]<class From>(std::type_identity<From>) {
    if (to.dtype() == DType::float32)
      launch<From, float>(from, more, to, stream);
    else
      launch<From, From>(from, more, to, stream);
  });
}

}  // namespace ronda::cuda
