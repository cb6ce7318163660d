#pragma once
#include <filesystem>
#include <string_view>

#include <ronda/data/byte_images.hpp>
#include <ronda/data/idx.hpp>

namespace ronda {

/// Grey images with a class each, as MNIST and its relatives (Fashion-MNIST, KMNIST) have them: `input` float32 (rows,
/// columns, 1), `target` 0..classes-1. 47 MB for MNIST's training set.
class MnistDataset final : public ByteImages {
 public:
  static constexpr int classes = 10;

  /// @param images  (samples, rows, columns)
  /// @param labels  (samples)
  /// @param source  where they come from, for errors
  /// Throws InputError where the numbers of images and labels differ, there are none, or a label is out of range.
  MnistDataset(IdxArray images, const IdxArray& labels, std::string_view source);
};

struct Mnist {
  MnistDataset train, test;
};

/// What MNIST's four files hold, as it lies there.
struct MnistFiles {
  IdxArray train_images, train_labels, test_images, test_labels;
};

/// Reads the files that load_mnist names, without looking at what is in them. Throws InputError likewise.
[[nodiscard]] MnistFiles read_mnist(const std::filesystem::path& directory);
/// The data that they hold. Throws InputError, with `directory`, where they do not belong together.
[[nodiscard]] Mnist make_mnist(MnistFiles files, const std::filesystem::path& directory);

/// Reads `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte` and `t10k-labels-idx1-ubyte`,
/// each with or without `.gz`. Throws InputError that names the file and the remedy.
[[nodiscard]] Mnist load_mnist(const std::filesystem::path& directory);

}  // namespace ronda
