#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/data/dataset.hpp>

namespace ronda {

struct PictureFilesOptions {
  std::int64_t size = 224;    ///< height and width of a sample
  std::int64_t resize = 256;  ///< length of the shorter side before the centre crop; at least `size`
  std::int64_t channels = 3;  ///< 1: grey, 0.299 red + 0.587 green + 0.114 blue (ITU-R BT.601)
};

/// Pictures without classes, one per file, in the given order: JPEG, PNG, or binary PGM and PPM with 8 bits per
/// channel. The first bytes decide the format. `input`: float32 (size, size, channels), in 0..1, as in ImageFolder;
/// `target`: int32 scalar, 0. A picture is decoded on each read and not cached.
class PictureFiles final : public Dataset {
 public:
  /// Throws InputError for invalid options.
  explicit PictureFiles(std::vector<std::filesystem::path> files, const PictureFilesOptions& options = {});
  ~PictureFiles() override;

  [[nodiscard]] std::size_t size() const override { return files_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return fields_; }
  /// Throws InputError that names file and problem if a file is damaged, or if this build lacks the library for its
  /// format. Decoders allocate.
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t sample) const override { return files_[sample].string(); }

 private:
  struct Tools;  ///< decoders

  std::vector<std::filesystem::path> files_;
  PictureFilesOptions options_;
  std::array<Field, 2> fields_;
  std::unique_ptr<Tools> tools_;
};

/// Encodes a picture as a PNG file.
/// @param rgb  red, green and blue of each pixel, row by row
/// Throws InputError in a build without PNG.
[[nodiscard]] std::vector<std::byte> encode_png(std::uint32_t height, std::uint32_t width,
                                                std::span<const std::uint8_t> rgb);

}  // namespace ronda
