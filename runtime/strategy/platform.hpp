#pragma once
#include <memory>

#include <ronda/core/compute_device.hpp>
#include <ronda/data/device_dataset.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/optim/updater.hpp>

namespace ronda {

/// What a kind of device gives to training: memory and streams, layers, updates, and batches of data that it keeps.
struct Platform {
  ComputeDevice device;                    ///< empty: the processor
  std::shared_ptr<Primitives> primitives;  ///< empty: oneDNN, on the processor alone
  MakeUpdater make_updater = {};           ///< empty: the device's own, make_host_updater or make_cuda_updater
  GatherRows gather = cuda_gather;         ///< of a device that keeps data

  /// The same with everything in its place. Throws LogicError where a GPU has no primitives.
  /// @param threads  of the processor
  [[nodiscard]] Platform completed(int threads) const;
};

}  // namespace ronda
