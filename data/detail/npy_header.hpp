#pragma once
#include <cstddef>
#include <span>
#include <string>

#include <ronda/core/dtype.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

/// What the beginning of a .npy file says.
struct NpyHeader {
  Shape shape;
  DType dtype = DType::float32;
  std::size_t bytes = 0;  ///< of the header itself; the values follow

  [[nodiscard]] std::size_t value_bytes() const { return static_cast<std::size_t>(shape.count()) * size_of(dtype); }
};

/// Reads the format of NumPy's lib.format, versions 1 to 3. Throws InputError, in the name of `source`.
[[nodiscard]] NpyHeader read_npy_header(std::span<const std::byte> file, const std::string& source);

}  // namespace ronda
