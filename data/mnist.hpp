#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include <ronda/core/buffer.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/data/memory_dataset.hpp>

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

/// Grey images with class labels in the format of MNIST, Fashion-MNIST and KMNIST: `input` float32 (rows, columns, 1),
/// `target` 0..classes-1. MNIST's training set takes 47 MB.
class MnistDataset final : public ByteImages {
 public:
  static constexpr int classes = 10;

  /// @param images  shape (samples, rows, columns)
  /// @param labels  shape (samples)
  /// @param source  origin of the data, for errors
  /// Throws InputError if the numbers of images and labels differ or are 0, or a label is out of range.
  MnistDataset(IdxArray images, const IdxArray& labels, std::string_view source);
};

struct Mnist {
  MnistDataset train, test;
};

/// The contents of MNIST's four files, not converted.
struct MnistFiles {
  IdxArray train_images, train_labels, test_images, test_labels;
};

/// Reads the files of load_mnist, without checking images against labels. Throws InputError as load_mnist.
[[nodiscard]] MnistFiles read_mnist(const std::filesystem::path& directory);
/// The datasets from these files. Throws InputError, with `directory`, if the files do not match.
[[nodiscard]] Mnist make_mnist(MnistFiles files, const std::filesystem::path& directory);

/// Reads `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`,
/// each with or without `.gz`. Throws InputError that names the file and the remedy.
[[nodiscard]] Mnist load_mnist(const std::filesystem::path& directory);

}  // namespace ronda
