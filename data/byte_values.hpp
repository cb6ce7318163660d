#pragma once
#include <cstdint>

#include <ronda/core/dtype.hpp>

namespace ronda {

/// What unsigned bytes of an array become in a batch.
enum class ByteValues : std::uint8_t {
  unit,   ///< float32, byte / 255: pixels
  label,  ///< int32
  same    ///< uint8
};

/// The type of a field whose elements an array stores so: floats of any width become float32, whole numbers int32,
/// unsigned bytes what `bytes` says.
[[nodiscard]] DType type_in_batch(DType stored, ByteValues bytes);

}  // namespace ronda
