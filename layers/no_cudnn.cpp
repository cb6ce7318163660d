// What a build without CUDA has in the place of the folder cudnn/.
#include <ronda/layers/primitives.hpp>
#include <ronda/runtime/core/device_context.hpp>
#include <ronda/runtime/core/error.hpp>

namespace ronda {

std::unique_ptr<Primitives> make_cudnn_primitives(DeviceContext&, Stream&, const EngineRules&) {
  throw InputError("no GPU to use: " + find_gpus().reason);
}

}  // namespace ronda
