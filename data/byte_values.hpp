#pragma once
#include <cstdint>

#include <ronda/core/dtype.hpp>

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

}  // namespace ronda
