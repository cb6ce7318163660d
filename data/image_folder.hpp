#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <ronda/data/dataset.hpp>

namespace ronda {

struct ImageFolderOptions {
  std::int64_t size = 224;    ///< of a sample: height and width
  std::int64_t resize = 256;  ///< the shorter side, before the middle is cropped; at least `size`
  /// In a training a random part of the picture, resized to `size`, in the place of the middle: see random_resized_crop
  /// for the two numbers, which are PyTorch's.
  bool random_crop = false;
  double least_area = 0.08, least_ratio = 0.75;
  std::size_t readers = 1;    ///< threads that decode, that which reads the batch among them
  bool skip_damaged = false;  ///< a damaged file is a sample of weight 0, and counted; false: an error
  std::string damage_remedy = ".skip_damaged leaves such files out";  ///< follows the text of that error
};

/// A folder of pictures, a subfolder a class, in PyTorch's ImageFolder's order: classes are the subfolders' names,
/// sorted; a class's pictures, those of its own subfolders too, sorted by folder and name. Files that end in .jpg,
/// .jpeg or .png count, in upper or lower case; the first bytes decide the format. Links to folders are followed,
/// except those to another class or back; each folder is read once for a class.
///
///     train/cat/1.jpg  train/cat/2.png  train/dog/1.jpg     classes cat, dog; three samples
///
/// `input`: float32 (size, size, 3), red, green, blue, scaled to 0..1; greys in three equal channels, without
/// transparency. `target`: int32 scalar. A picture is decoded when it is read: nothing is kept of it. It is resized by
/// bilinear interpolation with a filter as wide as the reduction.
///
/// The fingerprint is of all names' number, and of names and sizes of at most fingerprint_samples files.
class ImageFolder final : public Dataset {
 public:
  /// Throws InputError for a folder that cannot be read or has no classes, a class without pictures, and options that
  /// cannot work.
  explicit ImageFolder(const std::filesystem::path& folder, const ImageFolderOptions& options = {});
  ~ImageFolder() override;

  [[nodiscard]] const std::vector<std::string>& classes() const noexcept;
  [[nodiscard]] std::filesystem::path path(std::uint64_t sample) const;
  /// Number of left-out pictures by format, in words: `not read are 4 .bmp, 4 .webp in pictures`; empty: none.
  [[nodiscard]] std::string passed_over() const;
  /// Which samples were damaged where they were read so far; none unless they are skipped.
  [[nodiscard]] std::vector<std::uint64_t> damaged() const;

  [[nodiscard]] std::size_t size() const override;
  [[nodiscard]] std::span<const Field> fields() const override;
  /// Throws InputError that names file and sample, and what is wrong, where it is damaged and not to be skipped, and in
  /// a build without its library. A skipped one has the pixels of a sound sample of its batch, or zeros, and weight 0.
  /// Decoders allocate.
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t sample) const override { return path(sample).string(); }
  [[nodiscard]] std::uint64_t fingerprint() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ronda
