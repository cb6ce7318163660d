#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <ronda/core/message.hpp>
#include <ronda/data/dataset.hpp>

namespace ronda {

struct ImageFolderOptions {
  std::int64_t size = 224;    ///< height and width of a sample
  std::int64_t resize = 256;  ///< length of the shorter side before the centre crop; at least `size`
  /// In training, use a random part of the picture, resized to `size`, instead of the centre crop. See
  /// random_resized_crop for the two numbers; the defaults are PyTorch's.
  bool random_crop = false;
  double least_area = 0.08, least_ratio = 0.75;
  std::size_t readers = 1;    ///< decoding threads, including the thread that calls `read`
  bool skip_damaged = false;  ///< a damaged file becomes a sample of weight 0, and is counted; false: an error
  Message damage_remedy = setting("skip_damaged") + " leaves such files out";  ///< end of that error's text
};

/// A folder of pictures with one subfolder per class, in the order of PyTorch's ImageFolder: classes are the names of
/// the subfolders, sorted; the pictures of a class, including those in nested folders, are sorted by folder and name.
/// Files that end in .jpg, .jpeg or .png, in upper or lower case, are used; their first bytes decide the format. Links
/// to folders are followed, except links to another class or to a parent; each folder is read once per class.
///
///     train/cat/1.jpg  train/cat/2.png  train/dog/1.jpg     classes cat, dog; three samples
///
/// `input`: float32 (size, size, 3), red, green, blue, scaled to 0..1; grey pictures in three equal channels;
/// transparency is dropped. `target`: int32 scalar. A picture is decoded on each read and not cached. It is resized by
/// bilinear interpolation with a filter as wide as the reduction factor.
///
/// The fingerprint covers the number of files, and the names and sizes of at most fingerprint_samples files.
class ImageFolder final : public Dataset {
 public:
  /// Throws InputError for a folder that cannot be read or has no classes, a class without pictures, and invalid
  /// options.
  explicit ImageFolder(const std::filesystem::path& folder, const ImageFolderOptions& options = {});
  ~ImageFolder() override;

  [[nodiscard]] const std::vector<std::string>& classes() const noexcept;
  [[nodiscard]] std::filesystem::path path(std::uint64_t sample) const;
  /// A message with the number of ignored pictures by format: `not read are 4 .bmp, 4 .webp in pictures`; empty: none.
  [[nodiscard]] std::string passed_over() const;
  /// The samples that were found to be damaged so far; empty unless `skip_damaged`.
  [[nodiscard]] std::vector<std::uint64_t> damaged() const;

  [[nodiscard]] std::size_t size() const override;
  [[nodiscard]] std::span<const Field> fields() const override;
  /// Throws InputError that names file, sample and problem if a file is damaged (unless `skip_damaged`), or if this
  /// build lacks the library for its format. A skipped sample gets the pixels of an undamaged sample of the batch, or
  /// zeros, and weight 0. Decoders allocate.
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t sample) const override { return path(sample).string(); }
  [[nodiscard]] std::uint64_t fingerprint() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ronda
