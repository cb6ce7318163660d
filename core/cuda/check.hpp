#pragma once
#include <cuda_runtime_api.h>

#include <string_view>

namespace ronda::cuda {

/// Throws what `status` says, with CUDA's text and the call: ResourceError where memory ran out, DeviceError otherwise.
/// After an error of a kernel CUDA gives the same to every later call, so it cannot be missed.
void check(cudaError_t status, std::string_view call);

/// This thread works with GPU `index` from now on. A thread that never said so works with GPU 0, where its first call
/// takes half a gigabyte of that GPU's memory; saying it again costs next to nothing.
void enter(int index);

}  // namespace ronda::cuda
