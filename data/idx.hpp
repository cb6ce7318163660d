#pragma once
#include <cstdint>
#include <filesystem>
#include <span>

#include <ronda/core/buffer.hpp>
#include <ronda/core/shape.hpp>

namespace ronda {

/// The content of an IDX file of unsigned bytes, row-major: MNIST's format (Y. LeCun, C. Cortes, C. Burges, "The MNIST
/// database of handwritten digits").
struct IdxArray {
  Shape shape;
  Buffer memory;  ///< one byte per element

  [[nodiscard]] std::span<std::uint8_t> values() const noexcept {
    return {reinterpret_cast<std::uint8_t*>(memory.data()), memory.bytes()};
  }
};

/// Reads an IDX file, gzipped or not, and checks all of it: the magic number, the number of dimensions (`rank`), the
/// exact length, and gzip's checksum. Throws InputError that names the file, the expected and actual value, and the
/// remedy.
[[nodiscard]] IdxArray read_idx(const std::filesystem::path& file, int rank);

}  // namespace ronda
