#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/data/dataset.hpp>
#include <ronda/data/gather.hpp>

namespace ronda {

/// Gives `stream` the whole of `rows`. Allocates nothing, waits for nothing. Throws InputError in a build without CUDA.
void cuda_gather(const gather::Rows& rows, Stream& stream);
using GatherRows = std::function<decltype(cuda_gather)>;

/// A dataset in a device's memory, as it is stored (MNIST's pixels are bytes), of which batches are made over there:
/// what goes to the device is the numbers of the samples. A batch has the bits of Dataset::read.
class DeviceDataset {
 public:
  /// What it would take of the device's memory; 0 where the dataset does not say how it is stored.
  [[nodiscard]] static std::size_t bytes_of(const Dataset& data);

  /// Copies the data, and returns when it is there.
  /// @param data     says how it is stored; outlives this object
  /// @param context  likewise
  /// Throws ResourceError where the device has no room.
  DeviceDataset(const Dataset& data, DeviceContext& context, Stream& stream, GatherRows gather);

  [[nodiscard]] const Dataset& source() const noexcept { return *data_; }
  /// In the order of the stream: makes `batch`, of the device and of this data's fields, hold what is asked for.
  /// @param request  Batch::request's, in the device's memory. Allocates nothing.
  void gather(const std::uint64_t* request, const Batch& batch, Stream& stream) const;

 private:
  const Dataset* data_;
  GatherRows gather_;
  Buffer memory_;
  std::vector<gather::KeptField> kept_;  ///< in the order of the dataset's fields; without a place in a batch
};

}  // namespace ronda
