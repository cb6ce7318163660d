#pragma once

/// Before a function whose arithmetic a GPU's kernel and the host share, so that tests can hold it against the CPU's
/// code without a GPU.
#ifdef __CUDACC__
#define RONDA_HOST_DEVICE __host__ __device__
#else
#define RONDA_HOST_DEVICE
#endif
