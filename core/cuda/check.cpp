#include <ronda/core/cuda/check.hpp>
#include <ronda/core/error.hpp>

#include <string>

namespace ronda::cuda {

void check(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // otherwise a later launch would report a passing error as its own
  const std::string text =
      std::string(call) + " failed: " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")";
  if (status == cudaErrorMemoryAllocation)
    throw ResourceError(text + "; take a smaller batch, or " + setting("accumulate") +
                        ", or a GPU that nobody else uses");
  throw DeviceError(text);
}

void enter(int index) { check(cudaSetDevice(index), "cudaSetDevice"); }

}  // namespace ronda::cuda
