#pragma once
#include <array>
#include <filesystem>
#include <string_view>

#include <ronda/core/buffer.hpp>
#include <ronda/data/dataset.hpp>
#include <ronda/data/idx.hpp>

namespace ronda {

/// Grey images with a class each, as MNIST and its relatives (Fashion-MNIST, KMNIST) have them.
/// `input`: float32 (rows, columns, 1), a pixel scaled to 0..1, the float nearest to pixel / 255 (as PyTorch's
/// ToTensor). `target`: int32 scalar, 0..classes-1. The pixels stay bytes in memory (47 MB for MNIST's training set)
/// and become floats when they are read.
class MnistDataset final : public Dataset {
 public:
  static constexpr int classes = 10;

  /// @param images  (samples, rows, columns)
  /// @param labels  (samples)
  /// @param source  where they come from, for errors
  /// Throws InputError where the numbers of images and labels differ, there are none, or a label is out of range.
  MnistDataset(IdxArray images, IdxArray labels, std::string_view source);

  [[nodiscard]] std::size_t size() const override { return labels_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return fields_; }
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::vector<StoredField> stored() const override;

 private:
  [[nodiscard]] const std::uint8_t* image(std::uint64_t sample) const {
    return reinterpret_cast<const std::uint8_t*>(pixels_.data()) + sample * pixels_per_image_;
  }

  Buffer pixels_;  ///< in large pages: every sample is on another, and a page is looked up more slowly than read
  std::vector<std::uint8_t> labels_;
  std::size_t pixels_per_image_;
  std::array<Field, 2> fields_;
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
