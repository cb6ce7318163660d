#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/data/dataset.hpp>
#include <ronda/data/gather.hpp>

namespace ronda {

/// Issues all calls of `rows` to `stream`. Neither allocates nor waits. Throws InputError in a build without CUDA.
void cuda_gather(const gather::Rows& rows, Stream& stream);
using GatherRows = std::function<decltype(cuda_gather)>;

/// A dataset in device memory, in its stored form (MNIST's pixels are bytes). The device assembles the batches: only
/// sample numbers are copied to it. A batch has the same bits as from Dataset::read.
class DeviceDataset {
 public:
  /// Bytes of device memory that `data` needs; 0 if Dataset::stored is empty.
  [[nodiscard]] static std::size_t bytes_of(const Dataset& data);

  /// Copies the data; returns when the copy is done.
  /// @param data     Dataset::stored is not empty; outlives this object
  /// @param context  outlives this object
  /// Throws ResourceError if the device has not enough memory.
  DeviceDataset(const Dataset& data, DeviceContext& context, Stream& stream, GatherRows gather);

  [[nodiscard]] const Dataset& source() const noexcept { return *data_; }
  /// Writes the requested samples to `batch`, which is in device memory and has this dataset's fields, in the order of
  /// the stream.
  /// @param request  contents of Batch::request, in device memory. Allocates nothing.
  void gather(const std::uint64_t* request, const Batch& batch, Stream& stream) const;

 private:
  const Dataset* data_;
  GatherRows gather_;
  Buffer memory_;
  std::vector<gather::KeptField> kept_;  ///< in the order of the dataset's fields; `to` is not set
};

}  // namespace ronda
