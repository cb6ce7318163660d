#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/host_device.hpp>
#include <ronda/data/byte_values.hpp>
#include <ronda/data/dataset.hpp>

namespace ronda {

namespace gather {

/// A field of a dataset in device memory, and its destination in a batch.
struct KeptField {
  enum class Kind : std::uint8_t { words, bytes, units, labels };
  const std::byte* from;  ///< element 0 of sample 0
  std::byte* to;          ///< element 0 of row 0
  std::int64_t elements;  ///< elements per sample
  Kind kind;              ///< words have 4 bytes

  RONDA_HOST_DEVICE_INLINE void write(std::int64_t row, std::uint64_t sample, std::int64_t element) const {
    const std::int64_t source = static_cast<std::int64_t>(sample) * elements + element,
                       place = row * elements + element;
    const auto byte = [&] { return reinterpret_cast<const std::uint8_t*>(from)[source]; };
    switch (kind) {
      case Kind::words:
        reinterpret_cast<std::uint32_t*>(to)[place] = reinterpret_cast<const std::uint32_t*>(from)[source];
        break;
      case Kind::bytes: reinterpret_cast<std::uint8_t*>(to)[place] = byte(); break;
      case Kind::units: reinterpret_cast<float*>(to)[place] = unit_of(byte()); break;
      case Kind::labels: reinterpret_cast<std::int32_t*>(to)[place] = byte(); break;
    }
  }
};

/// Assembles a batch: call rows(i) for every i in [0, count()), in any order. The calls of a row are the elements of
/// its fields in order, then its weight.
struct Rows {
  static constexpr std::size_t most_fields = 8;
  KeptField fields[most_fields];
  std::int32_t field_count;
  std::int64_t per_row, row_count;
  const std::uint64_t* request;  ///< number of real rows, then the sample of each row
  float* weights;

  [[nodiscard]] std::int64_t count() const { return per_row * row_count; }

  RONDA_HOST_DEVICE_INLINE void operator()(std::int64_t i) const {
    constexpr std::int64_t short_division = std::int64_t{1} << 32;  // 32-bit division is several times as fast on a GPU
    const std::int64_t row = i < short_division && per_row < short_division
                                 ? static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(per_row)
                                 : i / per_row;
    std::int64_t element = i - row * per_row;
    for (std::int32_t c = 0; c < field_count; ++c) {
      if (element < fields[c].elements) return fields[c].write(row, request[1 + row], element);
      element -= fields[c].elements;
    }
    weights[row] = static_cast<std::uint64_t>(row) < request[0] ? 1.0F : 0.0F;
  }
};

}  // namespace gather
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
