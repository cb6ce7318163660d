#pragma once
#include <cstdint>
#include <type_traits>

#include <ronda/core/host_device.hpp>
#include <ronda/core/number.hpp>

namespace ronda::cudnn {

/// Numbers that lie side by side, which a thread of a GPU moves at once.
template <Number T, int width>
struct alignas(sizeof(T) * width) Numbers {
  T numbers[width];
};
/// So many numbers: one is a number.
template <Number T, int width>
using Run = std::conditional_t<width == 1, T, Numbers<T, width>>;

template <Number T>
RONDA_HOST_DEVICE_INLINE T& number(T& run, int /*k*/) {
  return run;
}
template <Number T>
RONDA_HOST_DEVICE_INLINE const T& number(const T& run, int /*k*/) {
  return run;
}
template <Number T, int width>
RONDA_HOST_DEVICE_INLINE T& number(Numbers<T, width>& run, int k) {
  return run.numbers[k];
}
template <Number T, int width>
RONDA_HOST_DEVICE_INLINE const T& number(const Numbers<T, width>& run, int k) {
  return run.numbers[k];
}

/// Where in images (N, rows, columns, runs) the run `i` lies.
struct ImagePlace {
  std::int64_t n, row, column, run;
};
RONDA_HOST_DEVICE_INLINE ImagePlace place_of(std::int64_t i, std::int64_t rows, std::int64_t columns,
                                             std::int64_t runs) {
  const auto divide = [&]<class Index>(Index at) {
    const Index c = at % static_cast<Index>(runs), pixel = at / static_cast<Index>(runs);
    const Index line = pixel / static_cast<Index>(columns);
    return ImagePlace{line / static_cast<Index>(rows), line % static_cast<Index>(rows),
                      pixel % static_cast<Index>(columns), c};
  };
  // A GPU divides narrow numbers several times faster.
  return i < std::int64_t{1} << 32 ? divide(static_cast<std::uint32_t>(i)) : divide(i);
}

}  // namespace ronda::cudnn
