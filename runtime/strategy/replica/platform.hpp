#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <ronda/core/device_context.hpp>
#include <ronda/core/dtype.hpp>
#include <ronda/data/device_dataset.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/optim/updater.hpp>

namespace ronda {

/// Parts of training that depend on the kind of device: memory and streams, layers, updates, and batches of data that
/// it keeps.
struct Platform {
  ComputeDevice device;                    ///< empty: the CPU
  std::shared_ptr<Primitives> primitives;  ///< empty: oneDNN; CPU only
  MakeUpdater make_updater = {};           ///< empty: that of the device's row
  GatherRows gather = {};                  ///< for a device that keeps data; empty: that of the device's row

  /// Returns a platform with the members of the device's row for all empty members. Throws LogicError if a GPU has no
  /// primitives.
  /// @param threads  number of CPU threads
  [[nodiscard]] Platform completed(int threads) const;
};

/// The devices of one kind that this process can use.
struct DeviceSurvey {
  bool built = true;        ///< this build has the backend
  std::size_t devices = 0;  ///< number of devices
  std::string reason = {};  ///< why none can be used, and the remedy; empty if one can be used
};

/// Settings of the layers' primitives.
struct PrimitivesRequest {
  int threads = 1;  ///< of the CPU
  DType dtype = DType::float32;
  EngineRules engines = {};  ///< of GPU libraries
};

/// One kind of device: a row of the table of platforms. Another accelerator is a folder in each of core, layers, optim
/// and data, and a row.
struct PlatformRow {
  DeviceKind kind;
  std::string_view name;  ///< as in `.device`
  std::function<DeviceSurvey()> survey;
  std::function<std::shared_ptr<DeviceContext>(int number, int threads)> context;
  std::function<std::shared_ptr<Primitives>(const ComputeDevice& device, const PrimitivesRequest& request)> primitives;
  MakeUpdater make_updater;
  GatherRows gather;  ///< empty: batches are read where the data lies

  /// The platform of the device with this number. Throws as `context` and `primitives` do.
  [[nodiscard]] Platform make(int number, const PrimitivesRequest& request) const;
};

/// All kinds of devices; the first is the CPU.
[[nodiscard]] std::span<const PlatformRow> platform_rows();
[[nodiscard]] const PlatformRow& platform_row(DeviceKind kind);

}  // namespace ronda
