#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/random.hpp>

namespace ronda {

/// A part of an image, in pixels.
struct CropBox {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
  bool operator==(const CropBox&) const = default;
};

/// How a random part is drawn: see random_resized_crop.
struct CropRange {
  double least_area = 0.08, least_ratio = 0.75;

  /// Throws InputError, in the name of `who`, for numbers that are not above 0 and at most 1.
  void check(const char* who) const;
};

/// The box that the key has for an image of this size. As PyTorch's: of ten draws the first that is within the image,
/// at a place that is as likely as any other; where none is, the largest part in the middle whose ratio is allowed.
[[nodiscard]] CropBox random_box(std::int64_t height, std::int64_t width, const CropRange& range, const RngKey& key);

/// A picture that is damaged; the text does not name its file.
class PictureError : public InputError {
 public:
  using InputError::InputError;
};

/// A picture in memory, or a part of it: red, green and blue, a byte each. Its memory is kept for the next one.
struct Picture {
  static constexpr std::int64_t channels = 3;
  static constexpr std::uint64_t most_pixels = std::uint64_t{1} << 27;
  /// Of a byte of a file: a deflated one is at most 1032, and 8 pixels each; a JPEG's block of 64 pixels is a bit or
  /// more.
  static constexpr std::uint64_t most_pixels_a_byte = 1032 * 8;

  std::int64_t height = 0, width = 0;  ///< of the whole picture
  CropBox part;                        ///< whose pixels these are
  std::vector<std::uint8_t> pixels;

  /// Throws PictureError for no pixels, for more than most_pixels, and for more than a file of this size can have, so
  /// that none takes memory that it does not fill. The pixels are there when `hold` has returned.
  void set_size(std::uint64_t new_height, std::uint64_t new_width, std::size_t file_bytes);
  void hold(const CropBox& new_part);
  /// Both, for the whole picture.
  void resize(std::uint64_t new_height, std::uint64_t new_width, std::size_t file_bytes);
  /// The pixels of the picture's row y, from part.left on.
  [[nodiscard]] std::uint8_t* row(std::int64_t y) { return pixels.data() + (y - part.top) * part.width * channels; }
};

/// The part that is wanted of a picture of this size.
using WantedPart = std::function<CropBox(std::int64_t height, std::int64_t width)>;

/// Decode a file's bytes: greys become three equal channels, transparency is left out, 16 bits are cut to 8. Throw
/// PictureError where the file is damaged, also where it is cut off; InputError in a build that lacks the library.
/// A JPEG's picture may hold the wanted part alone, or more: the pixels that decoding all of it gives. What is damaged
/// below that part is not seen then, but that the file is cut off is. No function: all.
void decode_jpeg(std::span<const std::byte> file, Picture& picture, const WantedPart& wanted = nullptr);
void decode_png(std::span<const std::byte> file, Picture& picture);
/// The same of a binary PGM or PPM, which needs no library.
void decode_netpbm(std::span<const std::byte> file, Picture& picture);

}  // namespace ronda
