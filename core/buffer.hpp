#pragma once
#include <cstddef>
#include <memory>

#include <ronda/core/stream.hpp>

namespace ronda {

/// Owns a block of memory of any origin: the heap, a shared mapping, a device. Move only. The memory is released with
/// the last buffer that shares its keeper.
class Buffer {
 public:
  static constexpr std::size_t alignment = 64;
  /// `bytes`, rounded up to a multiple of `alignment`.
  [[nodiscard]] static constexpr std::size_t aligned(std::size_t bytes) noexcept {
    return (bytes + alignment - 1) / alignment * alignment;
  }

  Buffer() = default;
  /// @param keeper  the owner of the memory: its destructor releases it
  Buffer(std::byte* data, std::size_t bytes, Device device, std::shared_ptr<const void> keeper)
      : data_(data), bytes_(bytes), device_(device), keeper_(std::move(keeper)) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    swap(moved);
    return *this;
  }

  /// Zeroed host memory, 64-byte aligned; large buffers are on huge pages if the system has them. Throws ResourceError.
  static Buffer host(std::size_t bytes);

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Device device() const noexcept { return device_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(device_, other.device_);
    std::swap(keeper_, other.keeper_);
  }

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  Device device_;
  std::shared_ptr<const void> keeper_;
};

/// Assigns offsets in one future allocation: first reserve all parts, then allocate `bytes()` once.
class ArenaPlan {
 public:
  /// The offset of the next `bytes`, aligned to Buffer::alignment.
  std::size_t reserve(std::size_t bytes) noexcept {
    const std::size_t offset = bytes_;
    bytes_ += Buffer::aligned(bytes);
    return offset;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

}  // namespace ronda
