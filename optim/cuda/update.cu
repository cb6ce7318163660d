#include <ronda/core/cuda/launch.cuh>
#include <ronda/core/cuda/stream.hpp>
#include <ronda/optim/kernel_updater.hpp>
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
  return with_number(layers.dtype, [&]<class T>(std::type_identity<T>) {
    return with_rule<std::unique_ptr<Updater>>(optimizer, [&]<class Rule>(const Rule& rule) {
      return std::make_unique<KernelUpdater<Rule, T, CudaLaunch>>(context, rule, optimizer, bindings, layers, count,
                                                                  options, stream);
    });
  });
}

}  // namespace ronda
