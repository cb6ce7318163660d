#pragma once
#include <memory>

#include <ronda/data/device_dataset.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/optim/updater.hpp>

namespace ronda::test {

/// The plain loops, of a half type those of make_rounded_primitives, as work of a FakeStream: done late, in its order,
/// and recorded where that is.
std::unique_ptr<Primitives> make_fake_primitives(DType dtype = DType::float32);

/// A GPU's updater, likewise; as make_cuda_updater.
std::unique_ptr<Updater> make_fake_updater(DeviceContext& context, Optimizer& optimizer,
                                           const OptimizerBindings& bindings, const LayerArenas& layers,
                                           std::size_t count, const UpdaterOptions& options, Stream& stream);

/// A GPU's batches of what it holds, likewise; as cuda_gather.
void fake_gather(const gather::Rows& rows, Stream& stream);

}  // namespace ronda::test
