#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include <ronda/data/detail/picture.hpp>
#include <ronda/data/detail/resample.hpp>

namespace ronda {

/// Throws InputError where samples of `size` pixels cannot be cut out of pictures whose shorter side is `resize`.
void check_picture_sizes(std::int64_t size, std::int64_t resize);

/// Decodes picture files, and cuts samples out of them: float32 (size, size, 3), in 0..1. A file is a JPEG, a PNG, or a
/// binary PGM or PPM of bytes (netpbm's P5 and P6), as its first bytes say. Its memory is kept for the next one.
///
/// Throws PictureError where a file is damaged or none of these, InputError in a build that lacks its library.
class PictureReader {
 public:
  /// The middle, `size` large, after the shorter side was resized to `resize`: PyTorch's Resize and CenterCrop.
  void read_middle(const std::filesystem::path& path, std::int64_t size, std::int64_t resize, float* pixels);
  /// A part, resized. No more of a JPEG is decoded than it needs, so that damage below is not seen.
  /// @param box  gives the part of a picture of that size
  void read_part(const std::filesystem::path& path, const WantedPart& box, std::int64_t size, float* pixels);

 private:
  void decode(const std::filesystem::path& path, const WantedPart& wanted);

  std::vector<std::byte> file_;
  Picture picture_;
  Resampler resample_;
};

}  // namespace ronda
