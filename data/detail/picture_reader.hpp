#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include <ronda/data/detail/crop_box.hpp>
#include <ronda/data/detail/picture.hpp>
#include <ronda/data/detail/resample.hpp>

namespace ronda {

/// Throws InputError where samples of `size` pixels cannot be cut out of pictures whose shorter side is `resize`.
void check_picture_sizes(std::int64_t size, std::int64_t resize);

/// Decodes picture files, and cuts samples out of them: float32 (size, size, 3), in 0..1. Its memory is kept for the
/// next one.
class PictureReader {
 public:
  /// A JPEG, a PNG, or a binary PGM or PPM of bytes (netpbm's P5 and P6), as its first bytes say. Throws PictureError
  /// where it is damaged or none of these, InputError in a build that lacks its library.
  void read(const std::filesystem::path& path);
  [[nodiscard]] const Picture& picture() const noexcept { return picture_; }

  /// The middle, `size` large, after the shorter side was resized to `resize`: PyTorch's Resize and CenterCrop.
  void write_middle(std::int64_t size, std::int64_t resize, float* pixels);
  /// A part, resized.
  void write_part(const CropBox& box, std::int64_t size, float* pixels);

 private:
  std::vector<std::byte> file_;
  Picture picture_;
  Resampler resample_;
};

}  // namespace ronda
