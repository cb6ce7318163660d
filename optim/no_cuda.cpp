// What a build without CUDA has in the place of the folder cuda/.
#include <ronda/core/error.hpp>
#include <ronda/optim/updater.hpp>

namespace ronda {

std::unique_ptr<Updater> make_cuda_updater(DeviceContext&, Optimizer&, const OptimizerBindings&, const LayerArenas&,
                                           std::size_t, const UpdaterOptions&, Stream&) {
  throw InputError("no GPU to use: " + find_gpus().reason);
}

}  // namespace ronda
