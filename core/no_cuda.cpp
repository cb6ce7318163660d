// What a build without CUDA has in the place of the folder cuda/.
#include <ronda/core/device_context.hpp>
#include <ronda/core/error.hpp>

namespace ronda {

GpuSurvey find_gpus() {
  GpuSurvey survey;
  survey.reason = "this build has no CUDA (configure with the preset 'cuda', or RONDA_CUDA=ON)";
  return survey;
}

void copy_now(const void*, void*, std::size_t, Device device) {
  throw LogicError("there is no " + device.text() + " in a build without CUDA");
}

std::unique_ptr<DeviceContext> make_cuda_context(int) { throw InputError("no GPU to use: " + find_gpus().reason); }

}  // namespace ronda
