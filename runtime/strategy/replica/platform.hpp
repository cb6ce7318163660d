#pragma once
#include <memory>

#include <ronda/core/compute_device.hpp>
#include <ronda/data/device_dataset.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/optim/updater.hpp>

namespace ronda {

/// Parts of training that depend on the kind of device: memory and streams, layers, updates, and batches of data that
/// it keeps.
struct Platform {
  ComputeDevice device;                    ///< empty: the CPU
  std::shared_ptr<Primitives> primitives;  ///< empty: oneDNN; CPU only
  MakeUpdater make_updater = {};           ///< empty: the device's default, make_host_updater or make_cuda_updater
  GatherRows gather = cuda_gather;         ///< for a device that keeps data

  /// Returns a platform with defaults for all empty members. Throws LogicError if a GPU has no primitives.
  /// @param threads  number of CPU threads
  [[nodiscard]] Platform completed(int threads) const;
};

}  // namespace ronda
