#include <ronda/core/cuda/launch.cuh>
#include <ronda/core/cuda/stream.hpp>
#include <ronda/optim/rules.hpp>

namespace ronda {
namespace {

struct CudaLaunch {
  template <class Body>
  static void for_each(Stream& stream, std::int64_t count, const Body& body) {
    cuda::for_each(cuda::handle_of(stream), count, body);
  }
};

}  // namespace

std::unique_ptr<Updater> make_cuda_updater(DeviceContext& context, Optimizer& optimizer,
                                           const OptimizerBindings& bindings, const LayerArenas& layers,
                                           std::size_t count, const UpdaterOptions& options, Stream& stream) {
  return make_kernel_updater<CudaLaunch>(context, optimizer, bindings, layers, count, options, stream);
}

}  // namespace ronda
