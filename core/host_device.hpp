#pragma once
#include <cstdint>

/// Marks a function that a GPU kernel and the host share, so that tests can compare it with the CPU's code without a
/// GPU.
#ifdef __CUDACC__
#define RONDA_HOST_DEVICE __host__ __device__
#define RONDA_HOST_DEVICE_INLINE __host__ __device__ __forceinline__
#else
#define RONDA_HOST_DEVICE
#define RONDA_HOST_DEVICE_INLINE [[gnu::always_inline]] inline  // compiled for the caller's instruction set
#endif

namespace ronda {

/// Sets a flag. Several threads may set it concurrently; it is read after they have finished.
RONDA_HOST_DEVICE_INLINE void raise_flag(std::uint32_t& flag) {
#ifdef __CUDA_ARCH__
  flag = 1;  // all threads write the same value
#else
  __atomic_store_n(&flag, 1U, __ATOMIC_RELAXED);
#endif
}

}  // namespace ronda
