#pragma once
#include <cstdint>

#include <ronda/core/dtype.hpp>
#include <ronda/core/host_device.hpp>

namespace ronda {

/// Conversion of an array's unsigned bytes in a batch.
enum class ByteValues : std::uint8_t {
  unit,   ///< float32, byte / 255: pixels
  label,  ///< int32
  same    ///< uint8
};

/// The type in a batch of elements stored as `stored`: floats of any width become float32, integers int32, unsigned
/// bytes as `bytes` says.
[[nodiscard]] DType type_in_batch(DType stored, ByteValues bytes);

/// Conversion of a stored element for a batch.
enum class Decode : std::uint8_t {
  none,  ///< copied unchanged
  unit,  ///< byte to float32, the nearest to byte / 255
  label  ///< byte to int32
};

/// byte / 255, rounded to the nearest float, without the slow division: 1/255 is split into a short part, whose product
/// is exact, and a small rest, so that only the sum of both products is rounded noticeably.
RONDA_HOST_DEVICE_INLINE float unit_of(std::uint8_t byte) {
  constexpr float head = 0x1.01p-8F, rest = 0x1.0101p-24F;
  const auto number = static_cast<float>(byte);
  return number * head + number * rest;
}

}  // namespace ronda
