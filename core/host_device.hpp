#pragma once
#include <cstdint>

/// Before a function whose arithmetic a GPU's kernel and the host share, so that tests can hold it against the CPU's
/// code without a GPU.
#ifdef __CUDACC__
#define RONDA_HOST_DEVICE __host__ __device__
#define RONDA_HOST_DEVICE_INLINE __host__ __device__ __forceinline__
#else
#define RONDA_HOST_DEVICE
#define RONDA_HOST_DEVICE_INLINE [[gnu::always_inline]] inline  // in whatever instruction set it is called from
#endif

namespace ronda {

/// Sets a flag that several threads may set at once, and that is read when they are through.
RONDA_HOST_DEVICE_INLINE void raise_flag(std::uint32_t& flag) {
#ifdef __CUDA_ARCH__
  flag = 1;  // the same value from all
#else
  __atomic_store_n(&flag, 1U, __ATOMIC_RELAXED);
#endif
}

}  // namespace ronda
