// What a build without CUDA has in the place of the folder cudnn/.
#include <ronda/core/device_context.hpp>
#include <ronda/core/error.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda {

std::unique_ptr<Primitives> make_cudnn_primitives(DeviceContext&, Stream&, const EngineRules&) {
  throw InputError("no GPU to use: " + find_gpus().reason);
}

}  // namespace ronda
