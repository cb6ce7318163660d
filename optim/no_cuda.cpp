// What a build without CUDA has in the place of the folder cuda/.
#include <ronda/core/error.hpp>
#include <ronda/optim/device_update.hpp>

namespace ronda {

std::unique_ptr<DeviceUpdate> make_cuda_update(DeviceContext&, const Optimizer&, const OptimizerBindings&,
                                               const LayerArenas&, std::size_t, const DeviceUpdateOptions&, Stream&) {
  throw InputError("no GPU to use: " + find_gpus().reason);
}

}  // namespace ronda
