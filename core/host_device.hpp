#pragma once

/// Before a function whose arithmetic a GPU's kernel and the host share, so that tests can hold it against the CPU's
/// code without a GPU.
#ifdef __CUDACC__
#define RONDA_HOST_DEVICE __host__ __device__
#define RONDA_HOST_DEVICE_INLINE __host__ __device__ __forceinline__
#else
#define RONDA_HOST_DEVICE
#define RONDA_HOST_DEVICE_INLINE [[gnu::always_inline]] inline  // in whatever instruction set it is called from
#endif
