#pragma once
#include <algorithm>
#include <cstdint>

#include <ronda/core/cuda/check.hpp>

namespace ronda::cuda {

constexpr int threads_a_block = 256;
constexpr int warp = 32;

template <class Body>
__global__ void for_each_kernel(std::int64_t count, Body body) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) body(i);
}

/// body(i) for every i in [0, count), one thread each; neighbours in `i` should touch neighbours in memory.
template <class Body>
void for_each(cudaStream_t stream, std::int64_t count, const Body& body) {
  if (count == 0) return;
  const std::int64_t blocks = std::min<std::int64_t>((count + threads_a_block - 1) / threads_a_block, 1 << 16);
  for_each_kernel<<<static_cast<unsigned>(blocks), threads_a_block, 0, stream>>>(count, body);
  check(cudaGetLastError(), "the launch of a kernel");
}

/// The threads of a warp, which work on one thing together; see OneThread for the host's.
struct Warp {
  [[nodiscard]] __device__ std::int64_t rank() const { return threadIdx.x % warp; }
  [[nodiscard]] __device__ std::int64_t size() const { return warp; }
  template <class T, class Combine>
  [[nodiscard]] __device__ T combine(T value, Combine both) const {
    for (int distance = warp / 2; distance > 0; distance /= 2)
      value = both(value, __shfl_xor_sync(0xffffffffU, value, distance));
    return value;
  }
};

template <class Body>
__global__ void for_each_by_warp_kernel(std::int64_t count, Body body) {
  const std::int64_t warps = static_cast<std::int64_t>(gridDim.x) * (blockDim.x / warp);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * (blockDim.x / warp) + threadIdx.x / warp;
  for (std::int64_t i = first; i < count; i += warps) body(Warp{}, i);
}

/// body(team, i) for every i in [0, count), one warp each.
template <class Body>
void for_each_by_warp(cudaStream_t stream, std::int64_t count, const Body& body) {
  if (count == 0) return;
  constexpr int rows = threads_a_block / warp;
  const std::int64_t blocks = std::min<std::int64_t>((count + rows - 1) / rows, 1 << 16);
  for_each_by_warp_kernel<<<static_cast<unsigned>(blocks), threads_a_block, 0, stream>>>(count, body);
  check(cudaGetLastError(), "the launch of a kernel");
}

}  // namespace ronda::cuda
