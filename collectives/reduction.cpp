#include <ronda/collectives/reduction.hpp>
#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/core/multiversion.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace ronda {
namespace {

template <class T>
[[gnu::always_inline]] inline void add_loop(T* __restrict into, const T* __restrict from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) into[i] += from[i];
}

template <class T>
[[gnu::always_inline]] inline void pair_loop(T* __restrict a, T* __restrict b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const T sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

/// In blocks that stay in the first-level cache between the sums and the copies.
template <class T>
[[gnu::always_inline]] inline void copies_loop(std::span<std::byte* const> copies, Range range,
                                               std::span<std::byte* const> targets) {
  constexpr std::size_t block = 4096 / sizeof(T);
  alignas(64) std::array<T, block> sum;
  for (std::size_t at = range.begin; at < range.end; at += block) {
    const std::size_t count = std::min(block, range.end - at);
    std::memcpy(sum.data(), copies[0] + at * sizeof(T), count * sizeof(T));
    for (std::byte* copy : copies.subspan(1)) add_loop(sum.data(), reinterpret_cast<const T*>(copy) + at, count);
    for (std::byte* target : targets) std::memcpy(target + at * sizeof(T), sum.data(), count * sizeof(T));
  }
}

RONDA_MULTIVERSION void add_float32(float* into, const float* from, std::size_t count) { add_loop(into, from, count); }
RONDA_MULTIVERSION void add_float64(double* into, const double* from, std::size_t count) {
  add_loop(into, from, count);
}
RONDA_MULTIVERSION void pair_float32(float* a, float* b, std::size_t count) { pair_loop(a, b, count); }
RONDA_MULTIVERSION void pair_float64(double* a, double* b, std::size_t count) { pair_loop(a, b, count); }
RONDA_MULTIVERSION void copies_float32(std::span<std::byte* const> copies, Range range,
                                       std::span<std::byte* const> targets) {
  copies_loop<float>(copies, range, targets);
}
RONDA_MULTIVERSION void copies_float64(std::span<std::byte* const> copies, Range range,
                                       std::span<std::byte* const> targets) {
  copies_loop<double>(copies, range, targets);
}

template <class T>
T* at(std::byte* bytes, std::size_t index) {
  return reinterpret_cast<T*>(bytes) + index;
}

}  // namespace

Elements elements_of(const Tensor& tensor) {
  return {tensor.data(), static_cast<std::size_t>(tensor.desc().padded_count()), tensor.dtype()};
}

void require_summable(DType dtype) {
  if (dtype != DType::float32 && dtype != DType::float64)
    throw LogicError("ranks sum float32 and float64, not " + std::string(name_of(dtype)));
}

void add(const Elements& into, const std::byte* from) {
  if (into.dtype == DType::float32)
    add_float32(at<float>(into.data, 0), reinterpret_cast<const float*>(from), into.count);
  else
    add_float64(at<double>(into.data, 0), reinterpret_cast<const double*>(from), into.count);
}

void sum_copies(std::span<std::byte* const> copies, DType dtype, Range range, std::span<std::byte* const> targets) {
  const bool pair = copies.size() == 2 && targets.data() == copies.data() && targets.size() == 2;
  const bool single = dtype == DType::float32;
  if (pair && single)
    pair_float32(at<float>(copies[0], range.begin), at<float>(copies[1], range.begin), range.size());
  else if (pair)
    pair_float64(at<double>(copies[0], range.begin), at<double>(copies[1], range.begin), range.size());
  else if (single)
    copies_float32(copies, range, targets);
  else
    copies_float64(copies, range, targets);
}

}  // namespace ronda
